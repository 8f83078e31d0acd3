/** Reads scenario files, and suggests similar names if a name is misspelled. */
import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, extname } from "node:path";
import { UsageError, unexpected } from "../../core/errors.ts";
import { suggestion } from "../../core/suggestion.ts";
import { protocolNames } from "../../protocols/index.ts";
import { docsPage, packageFile } from "../../runtime/package-files.ts";
import { contentOf } from "../files.ts";

/** The scenarios that come with the package. */
const SCENARIOS = packageFile("scenarios");

/**
 * Returns the text of a scenario file.
 * @throws UsageError if the file does not exist. Suggests a similar name from the same folder, if there is one.
 */
export function scenarioText(file: string): string {
  try {
    return contentOf(file, "the scenario", "bad-scenario");
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const close = suggestion(basename(file, extname(file)), namesIn(dirname(file)));
    throw new UsageError(error.code, `${error.message}${close.replace("?)", ".yaml?)")}`);
  }
}

/**
 * Returns the error for a name that is neither a protocol nor a file. The name may be misspelled, or may be a scenario
 * without its path.
 */
export function unknownSubject(name: string): UsageError {
  const scenarios = namesIn(SCENARIOS);
  const close = suggestion(name, [...protocolNames, ...scenarios]);
  const scenario = scenarios.find((each) => each === name || close.includes(` ${each}?`));
  const hint = scenario === undefined ? close : ` (did you mean ${docsPage(`../scenarios/${scenario}.yaml`)}?)`;
  const expected = "a name listed by `coterie protocols`, or a scenario file such as x.yaml";
  return new UsageError("unknown-protocol", `${unexpected("the protocol", expected, name)}${hint}`);
}

function namesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((file) => (file.endsWith(".yaml") ? [basename(file, ".yaml")] : []));
}
