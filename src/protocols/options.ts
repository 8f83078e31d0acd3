/** What every algorithm does with the options it is given. */
import { UsageError, unexpected } from "../core/errors.ts";
import { problem, type Shape, type ShapeNode } from "../core/shape.ts";

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
  if (declaring !== null) declare(declaring, settled, shape);
  return settled;
}

/** An option that an algorithm, or a part beside it, declares. */
export interface DeclaredOption {
  /** The parts around it, the outermost first; none where the options are the algorithm's alone. */
  readonly path: readonly string[];
  readonly name: string;
  readonly shape: ShapeNode;
  /** What it is where nobody says otherwise. */
  readonly preset: unknown;
}

interface Declaring {
  readonly path: readonly string[];
  /** What a caller cannot set: the form of the algorithm has set it. */
  readonly fixed: readonly string[];
  readonly found: Map<string, readonly DeclaredOption[]>;
}

let declaring: Declaring | null = null;

/** All options that a protocol settles while it is made. What an inner algorithm settles again was handed down to it. */
export function declaredOptions(make: (options?: object) => unknown): readonly DeclaredOption[] {
  const found: Declaring["found"] = new Map();
  declaredWithin({ path: [], fixed: [], found }, () => make());
  return [...found.values()].flat().filter((option) => isTaken(option, make));
}

/** Whether a caller may give it there: what is settled beside the parts of an assembly is handed on to one of them. */
function isTaken({ path, name, preset }: DeclaredOption, make: (options: object) => unknown): boolean {
  try {
    make([...path, name].reduceRight<unknown>((inner, part) => ({ [part]: inner }), preset) as object);
    return true;
  } catch (error) {
    if (error instanceof UsageError) return false;
    throw error;
  }
}

/** The options of what is made here stand under this name. */
export function inPart<T>(part: string, make: () => T): T {
  if (declaring === null) return make();
  const { path, fixed, found } = declaring;
  const own = fixed.flatMap((name) => (name.startsWith(`${part}.`) ? name.slice(part.length + 1) : []));
  return declaredWithin({ path: [...path, part], fixed: own, found }, make);
}

/** These are not for callers to set; those of parts with their part, as `client.reads`. */
export const withFixed = <T>(names: readonly string[], make: () => T): T =>
  declaring === null ? make() : declaredWithin({ ...declaring, fixed: [...declaring.fixed, ...names] }, make);

function declaredWithin<T>(now: Declaring, make: () => T): T {
  const before = declaring;
  declaring = now;
  try {
    return make();
  } finally {
    declaring = before;
  }
}

function declare({ path, fixed, found }: Declaring, settled: object, shape: ShapeNode): void {
  const place = path.join(".");
  if (found.has(place) || shape.kind !== "struct") return;
  const presets = settled as Readonly<Record<string, unknown>>;
  const own = Object.entries(shape.fields).filter(([name]) => !fixed.includes(name));
  found.set(
    place,
    own.map(([name, of]) => ({ path, name, shape: of, preset: presets[name] })),
  );
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
