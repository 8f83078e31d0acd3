/** What every algorithm does with the options it is given. */
import { UsageError, unexpected } from "../core/errors.ts";
import { problem, type Shape } from "../core/shape.ts";

/** Settles a protocol's options: the defaults, overridden by what was given, every unknown word or wrong kind refused. */
export function settle<O extends object>(
  defaults: O,
  shape: Shape<O>,
  given: Partial<O> | undefined,
  owner: string,
): O {
  const settled = { ...defaults, ...given };
  const wrong = problem(shape, settled, owner);
  if (wrong !== null) throw new UsageError("bad-option", `${wrong}${known(defaults, settled)}`);
  return settled;
}

/** What there is, where one was given that there is not. */
function known(defaults: object, settled: object): string {
  const names = Object.keys(defaults);
  if (Object.keys(settled).every((name) => names.includes(name))) return "";
  return names.length === 0 ? " (there are no options)" : ` (the options are ${names.join(", ")})`;
}

/** Refuses a duration or count that is not above zero. */
export function requirePositive(name: string, value: number): void {
  if (!(Number.isFinite(value) && value > 0))
    throw new UsageError("bad-option", unexpected(name, "a finite number > 0", value));
}

/** Refuses words that an assembly's parts are not called by: a misspelt part would silently run on its defaults. */
export function requireParts(owner: string, given: object, parts: readonly string[]): void {
  const stray = Object.keys(given).find((name) => !parts.includes(name));
  if (stray !== undefined)
    throw new UsageError("bad-option", unexpected(`the options of ${owner}`, `for ${parts.join(" or ")}`, stray));
}
