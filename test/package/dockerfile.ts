/** Reads the steps of examples/deploy/Dockerfile. Each occurs once. Tests may run on machines without Docker. */
import { readFileSync } from "node:fs";

const text = readFileSync(new URL("../../examples/deploy/Dockerfile", import.meta.url), "utf8");
const steps = new Map([...text.matchAll(/^([A-Z]+) (.*)$/gm)].map(([, step = "", words = ""]) => [step, words]));

function wordsOf(step: string): string {
  const words = steps.get(step);
  if (words === undefined) throw new Error(`expected a step ${step} in the Dockerfile, got ${[...steps.keys()]}`);
  return words;
}

const [pattern = "", into = ""] = wordsOf("COPY").split(" ");
export const copied = { pattern, into };
/** The installation command in the folder of the image that the package is copied into. */
export const installs = wordsOf("RUN").split(" && ")[0] as string;
export const entrypoint = JSON.parse(wordsOf("ENTRYPOINT")) as readonly string[];
/** The working folder of the image. */
export const workdir = wordsOf("WORKDIR");
