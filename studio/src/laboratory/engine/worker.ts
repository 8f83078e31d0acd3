/** The worker: questions in, answers out, one after the other. */
import "./no-compiling.ts";
import type { Answer, Asked } from "./answers.ts";
import { Laboratory } from "./laboratory.ts";

const laboratory = new Laboratory(async (name) => (await import("./scenarios.ts")).scenarioText(name));

const answer = (said: Answer): void => postMessage(said);

addEventListener("message", ({ data }: MessageEvent<Asked>) => void answered(data));

async function answered(asked: Asked): Promise<void> {
  const { id } = asked;
  try {
    const value = await laboratory.answer(asked, ({ phase, states, transitions, depth, events }) =>
      answer({ id, progress: { phase, states, transitions, depth, events } }),
    );
    answer({ id, value });
  } catch (error) {
    answer({ id, error: error instanceof Error ? error.message : String(error) });
  }
}
