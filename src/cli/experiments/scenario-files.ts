/** Reads scenario files, and suggests similar names if a name is misspelled. */
import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, extname } from "node:path";
import { fileURLToPath } from "node:url";
import { UsageError, unexpected } from "../../core/errors.ts";
import { protocolNames } from "../../protocols/index.ts";
import { suggestion } from "../../protocols/suggestion.ts";
import { docsPage } from "../../runtime/docs-page.ts";
import { contentOf } from "../files.ts";

/** The scenarios of the package. */
const SCENARIOS = fileURLToPath(new URL("../../../scenarios", import.meta.url));

/** The text of a scenario file. @throws UsageError, with a similar name in the same folder if the file does not exist */
export function scenarioText(file: string): string {
  try {
    return contentOf(file, "the scenario", "bad-scenario");
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const close = suggestion(basename(file, extname(file)), namesIn(dirname(file)));
    throw new UsageError(error.code, `${error.message}${close.replace("?)", ".yaml?)")}`);
  }
}

/** The error for a name that is neither a protocol nor a file: it may be misspelled, or a scenario without its path. */
export function unknownSubject(name: string): UsageError {
  const scenarios = namesIn(SCENARIOS);
  const close = suggestion(name, [...protocolNames, ...scenarios]);
  const scenario = scenarios.find((each) => each === name || close.includes(` ${each}?`));
  const hint = scenario === undefined ? close : ` (did you mean ${docsPage(`../scenarios/${scenario}.yaml`)}?)`;
  const expected = "a name that `coterie protocols` lists, or a scenario file such as x.yaml";
  return new UsageError("unknown-protocol", `${unexpected("the protocol", expected, name)}${hint}`);
}

function namesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).flatMap((file) => (file.endsWith(".yaml") ? [basename(file, ".yaml")] : []));
}
