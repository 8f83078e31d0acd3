/** The worker: handles requests and sends responses. */
import "./no-compiling.ts";
import type { Request } from "./answers.ts";
import { Laboratory } from "./laboratory.ts";
import { RequestQueue } from "./request-queue.ts";

const laboratory = new Laboratory(async (name) => (await import("./scenarios.ts")).scenarioText(name));
const queue = new RequestQueue(laboratory, (response) => postMessage(response));

addEventListener("message", ({ data }: MessageEvent<Request>) => void queue.add(data));
