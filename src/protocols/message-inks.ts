/** Inks (color and pattern) for a protocol's message types. A type has the same ink in all forms and all drawings. */
import type { ShapeNode } from "../core/shape.ts";
import { type AnyProtocol, isRegistered, protocolNamed } from "./index.ts";

type Fields = Readonly<Record<string, ShapeNode>>;

/**
 * Returns the ink index for each message, keyed by full message name, such as `election.answer`. Messages in the
 * textbook form come first and periodic messages last. A hardened or assembled form's `mutex.request` has the same ink
 * as `request` in the textbook form. Empty if the protocol is not in the registry.
 */
export function messageInksOf(protocol: string): Readonly<Record<string, number>> {
  if (!isRegistered(protocol)) return {};
  const known = inksMade.get(protocol) ?? inksIn(protocol);
  inksMade.set(protocol, known);
  return known;
}

const inksMade = new Map<string, Readonly<Record<string, number>>>();

function inksIn(protocol: string): Record<string, number> {
  const { periodic } = protocolNamed(protocol).presentation;
  /** All names of each type. */
  const types: string[][] = [];
  for (const names of formsOf(protocol).map(messageTypesOf)) {
    const taken = new Set<string[]>();
    for (const name of names) {
      // A form may have two messages with the same name, for example if one multicast runs on top of another. They get
      // different inks.
      const free = types.filter((type) => !taken.has(type));
      const own =
        free.find((type) => type.includes(name)) ?? free.find((type) => type.some((one) => isSame(one, name)));
      if (own === undefined) types.push([name]);
      else if (!own.includes(name)) own.push(name);
      taken.add(own ?? (types.at(-1) as string[]));
    }
  }
  const keepsComing = ([name = ""]: readonly string[]): boolean => periodic.includes(name.split(".").at(-1) ?? "");
  const inOrder = [...types.filter((type) => !keepsComing(type)), ...types.filter(keepsComing)];
  return Object.fromEntries(inOrder.flatMap((names, place) => names.map((name) => [name, place])));
}

/** Returns all forms of a protocol, with the textbook form first and the form for real processes last. */
export function formsOf(protocol: string): AnyProtocol[] {
  const { model, node, variants } = protocolNamed(protocol);
  return [model(), ...Object.values(variants).map((variant) => variant.model()), node()];
}

const isSame = (one: string, other: string): boolean => one.endsWith(`.${other}`) || other.endsWith(`.${one}`);

/** Returns the full names of a protocol's message types, in declaration order. */
export function messageTypesOf({ shapes }: AnyProtocol): string[] {
  return namesIn(shapes.message ?? {});
}

function namesIn(variants: Readonly<Record<string, Fields>>): string[] {
  return Object.entries(variants).flatMap(([type, { body }]) =>
    body?.kind === "variants" ? namesIn(fieldsOf(body.variants)).map((inner) => `${type}.${inner}`) : [type],
  );
}

function fieldsOf(variants: Readonly<Record<string, ShapeNode>>): Record<string, Fields> {
  return Object.fromEntries(
    Object.entries(variants).map(([type, shape]) => [type, shape.kind === "struct" ? shape.fields : {}]),
  );
}

// For drawing a protocol's runs: its message inks, and the requests whose replies can be withheld.

type ByName<T> = Readonly<Record<string, T>>;

/** Returns a protocol's inks and withheld replies. Both are empty if the protocol is not in the registry. */
export function drawnAs(protocol: string): { readonly inks: ByName<number>; readonly withheld: ByName<string> } {
  const withheld = isRegistered(protocol) ? protocolNamed(protocol).presentation.withheld : {};
  return { inks: messageInksOf(protocol), withheld };
}
