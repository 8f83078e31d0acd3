/** The worker: questions in, answers out. */
import "./no-compiling.ts";
import { Answering } from "./answering.ts";
import type { Asked } from "./answers.ts";
import { Laboratory } from "./laboratory.ts";

const laboratory = new Laboratory(async (name) => (await import("./scenarios.ts")).scenarioText(name));
const answering = new Answering(laboratory, (answer) => postMessage(answer));

addEventListener("message", ({ data }: MessageEvent<Asked>) => void answering.take(data));
