/** What words on the command line may be. */

import { UsageError, unexpected } from "../core/errors.ts";
import * as written from "../experiment/written-values.ts";
import { MAX_PORT } from "../runtime/host-port.ts";

/** Where a local cluster is found if nobody says otherwise. */
export const DEFAULT_PORT = 7400;

/** A parser of whole numbers for commander. @throws UsageError, in the parser. */
export function wholeNumber(option: string, min: number, max: number, words?: string) {
  const read = written.wholeNumber(min, max, words);
  return (text: string): number => read(text, option);
}

export const memberArgument = (name: string) => wholeNumber(name, 0, Number.MAX_SAFE_INTEGER, "a member's id");

/** A parser of base URLs of admin pages for commander. @throws UsageError, in the parser. */
export function adminUrl(option: string, example = "http://127.0.0.1:7400") {
  return (text: string): string => {
    const url = URL.canParse(text) ? new URL(text) : null;
    if (url?.protocol === "http:" && url.pathname === "/" && url.search === "") return url.origin;
    throw new UsageError("bad-argument", unexpected(option, `a URL such as ${example}`, text));
  };
}

export const MAX_SEED = 2 ** 32 - 1;
/** A parser of seeds for commander. */
export const seed = wholeNumber("--seed", 0, MAX_SEED);

export const port = wholeNumber("--port", 0, MAX_PORT, `0 or a port up to ${MAX_PORT}`);
