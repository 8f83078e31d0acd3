/**
 * Option tables. Each algorithm declares one table with the shape, range, default and meaning of every option. The
 * options' type, their validation, the studio's form, the output of `coterie protocols NAME` and the tables in the docs
 * are derived from this table.
 */
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import { boolean, list, natural, problem, real, type Shape, struct } from "../core/shape.ts";

/** One option of an algorithm. */
export interface Option<T> {
  readonly shape: Shape<T>;
  readonly default: T;
  /** A phrase in Markdown that describes the option. Option names and values are code spans. */
  readonly help: string;
  readonly range: Range;
}

/** The bounds of a number. `above` and `below` are exclusive; `min` and `max` are inclusive. */
export interface Range {
  readonly above?: number;
  readonly min?: number;
  readonly below?: number;
  readonly max?: number;
}

// biome-ignore lint/suspicious/noExplicitAny: one table holds options of several types.
type Fields = Readonly<Record<string, Option<any>>>;

/** The table of an algorithm's options. */
export interface OptionTable<O extends object> {
  readonly defaults: O;
  /** Returns the defaults with the given values applied. @throws UsageError if an option is unknown or out of range. */
  settle(given: Partial<O> | undefined): O;
}

/** The type of the options declared by a table. */
export type OptionsOf<T> = T extends OptionTable<infer O> ? O : never;
/** The type of the values for a group of options, which several tables can share. */
export type ValuesOf<F> = { [K in keyof F]: F[K] extends Option<infer T> ? T : never };

/** Declares an option. @param preset the default @param help a phrase that describes the option */
export const option = <T>(shape: Shape<T>, preset: NoInfer<T>, help: string, range: Range = {}): Option<T> => ({
  shape,
  default: preset,
  help,
  range,
});
/** Declares a boolean option. */
export const flag = (preset: boolean, help: string): Option<boolean> => option(boolean, preset, help);
/** Declares a number above 0, such as a time in milliseconds. */
export const positive = (preset: number, help: string, range: Range = {}): Option<number> =>
  option(real, preset, help, { above: 0, ...range });
/** Declares a whole number of 1 or more. */
export const count = (preset: number, help: string, range: Range = {}): Option<number> =>
  option(natural, preset, help, { above: 0, ...range });
/** Declares a whole number of 0 or more. The help text should explain the meaning of 0. */
export const whole = (preset: number, help: string, range: Range = {}): Option<number> =>
  option(natural, preset, help, range);

/** Creates the shape of a list of node ids that belongs to the caller. */
export const nodeIds = (maxItems: number): Shape<readonly NodeId[]> => list(natural, maxItems);

/** Throws a UsageError that describes the value expected for an option. */
export type Refuse<O> = (name: keyof O & string, expected: string) => never;

/**
 * Declares an algorithm's options.
 * @param owner the name of the algorithm, for error messages.
 * @param fields the options by name.
 * @param check rejects combinations of values that are incompatible with each other.
 */
export function optionTable<F extends Fields>(
  owner: string,
  fields: F,
  check: (settled: ValuesOf<F>, refuse: Refuse<ValuesOf<F>>) => void = () => {},
): OptionTable<ValuesOf<F>> {
  const all = Object.entries(fields) as [keyof F & string, Option<unknown>][];
  const defaults = Object.fromEntries(all.map(([name, each]) => [name, each.default])) as ValuesOf<F>;
  const shape = struct(Object.fromEntries(all.map(([name, each]) => [name, each.shape])));
  const names = Object.keys(defaults);
  const known = names.length === 0 ? "it has no options" : `the options are ${names.join(", ")}`;
  return {
    defaults,
    settle(given) {
      const settled = { ...defaults, ...given };
      const wrong = problem(shape, settled, owner);
      if (wrong !== null) {
        const isKnown = Object.keys(settled).every((name) => names.includes(name));
        throw new UsageError("bad-option", isKnown ? wrong : `${wrong} (${known})`);
      }
      const refuse: Refuse<ValuesOf<F>> = (name, expected) => {
        throw new UsageError("bad-option", unexpected(`${owner}.${name}`, expected, settled[name]));
      };
      for (const [name, each] of all) if (!isWithin(each.range, settled[name])) refuse(name, rangeText(each));
      check(settled, refuse);
      declare(all, settled);
      return settled;
    },
  };
}

/** Rejects every option. Used by algorithms that have none. @throws UsageError if any option is given. */
export const requireNoOptions = (owner: string, given: object | undefined): void =>
  void optionTable(owner, {}).settle(given);

const isWithin = ({ above, min, below, max }: Range, value: unknown): boolean =>
  (above === undefined || (value as number) > above) &&
  (min === undefined || (value as number) >= min) &&
  (below === undefined || (value as number) < below) &&
  (max === undefined || (value as number) <= max);

/** Returns a description of the accepted values, such as "a whole number > 0 and <= 100". */
export function rangeText({ shape, range }: Pick<Option<unknown>, "shape" | "range">): string {
  const bounds = { above: ">", min: ">=", below: "<", max: "<=" } as const;
  const limits = Object.entries(bounds).flatMap(([name, sign]) => {
    const bound = range[name as keyof Range];
    return bound === undefined ? [] : [`${sign} ${bound}`];
  });
  return `${shape.kind === "natural" ? "a whole number" : "a finite number"} ${limits.join(" and ")}`.trim();
}

/** An option that a protocol's caller can set. */
export interface DeclaredOption extends Option<unknown> {
  /** The names of the enclosing parts, outermost first. Empty if the option belongs to the algorithm itself. */
  readonly path: readonly string[];
  readonly name: string;
}

interface Declarations {
  readonly path: readonly string[];
  /** Options that this form of the algorithm fixes. Callers cannot set them. */
  readonly fixed: readonly string[];
  readonly found: Map<string, readonly DeclaredOption[]>;
}

let declaring: Declarations | null = null;

/** Returns all options that callers of `make` can set, with the defaults for this form. */
export function declaredOptions(make: (options?: object) => unknown): readonly DeclaredOption[] {
  const found: Declarations["found"] = new Map();
  within({ path: [], fixed: [], found }, () => make());
  return [...found.values()].flat().filter((each) => isTaken(each, make));
}

/**
 * Whether callers can set the option at this path. If an assembly settles a part's options outside `inPart`, they are
 * recorded without the part's name, and the assembly rejects them at that path.
 */
function isTaken({ path, name, default: preset }: DeclaredOption, make: (options: object) => unknown): boolean {
  try {
    make([...path, name].reduceRight<unknown>((inner, part) => ({ [part]: inner }), preset) as object);
    return true;
  } catch (error) {
    if (error instanceof UsageError) return false;
    throw error;
  }
}

/** Creates a protocol whose options are given under the name of a part. */
export function inPart<T>(part: string, make: () => T): T {
  if (declaring === null) return make();
  const { path, fixed, found } = declaring;
  const own = fixed.flatMap((name) => (name.startsWith(`${part}.`) ? name.slice(part.length + 1) : []));
  return within({ path: [...path, part], fixed: own, found }, make);
}

/** Fixes options so that callers cannot set them. A part's options are prefixed with its name, as in `client.reads`. */
export const withFixed = <T>(names: readonly string[], make: () => T): T =>
  declaring === null ? make() : within({ ...declaring, fixed: [...declaring.fixed, ...names] }, make);

/**
 * Records a declaration. The first declaration counts: it comes from the outer algorithm, and an inner algorithm
 * settles the same options again.
 */
function declare(all: readonly [string, Option<unknown>][], settled: object): void {
  if (declaring === null || declaring.found.has(declaring.path.join("."))) return;
  const { path, fixed, found } = declaring;
  const values = settled as Readonly<Record<string, unknown>>;
  const own = all.filter(([name]) => !fixed.includes(name));
  found.set(
    path.join("."),
    own.map(([name, each]) => ({ ...each, path, name, default: values[name] })),
  );
}

function within<T>(now: Declarations, make: () => T): T {
  const before = declaring;
  declaring = now;
  try {
    return make();
  } finally {
    declaring = before;
  }
}

/**
 * Rejects names that are not parts of the assembly. Without this check, options for a misspelled part would be ignored.
 */
export function requireParts(owner: string, given: object, parts: readonly string[]): void {
  const stray = Object.keys(given).find((name) => !parts.includes(name));
  if (stray !== undefined)
    throw new UsageError("bad-option", unexpected(`the options of ${owner}`, `for ${parts.join(" or ")}`, stray));
}
