/** The worker: questions in, answers out, one after the other. */
import "./no-compiling.ts";
import type { Answer, Asked } from "./answers.ts";
import { Laboratory } from "./laboratory.ts";

const laboratory = new Laboratory(async (name) => (await import("./scenarios.ts")).scenarioText(name));

const answer = (said: Answer): void => postMessage(said);

addEventListener("message", async ({ data }: MessageEvent<Asked>) => {
  const { id } = data;
  try {
    const value = await laboratory.answer(data, ({ phase, states, transitions, depth }) =>
      answer({ id, progress: { phase, states, transitions, depth } }),
    );
    answer({ id, value });
  } catch (error) {
    answer({ id, error: error instanceof Error ? error.message : String(error) });
  }
});
