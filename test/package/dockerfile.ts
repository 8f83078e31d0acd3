/** The steps of examples/deploy/Dockerfile, each of which comes once. There may be no Docker where tests run. */
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
/** What is run in the folder of the image, into which the package is copied. */
export const installs = wordsOf("RUN").split(" && ")[0] as string;
export const entrypoint = JSON.parse(wordsOf("ENTRYPOINT")) as readonly string[];
/** The folder of the image in which all of it is done. */
export const workdir = wordsOf("WORKDIR");
