/** The ink (color and pattern) of each message type of a protocol. It is the same in all forms and all drawings. */
import type { ShapeNode } from "../core/shape.ts";
import { type AnyProtocol, protocolNamed, protocolNames } from "./index.ts";

type Fields = Readonly<Record<string, ShapeNode>>;

/**
 * Maps full message names, such as `election.answer`, to indexes in the list of inks. Messages of the textbook form come
 * first,
 * periodic messages last. A hardened or assembled form's `mutex.request` is the textbook's `request`. Empty if the
 * protocol is
 * not in the registry.
 */
export function messageInksOf(protocol: string): Readonly<Record<string, number>> {
  if (!protocolNames.includes(protocol)) return {};
  const known = inksMade.get(protocol) ?? inksIn(protocol);
  inksMade.set(protocol, known);
  return known;
}

const inksMade = new Map<string, Readonly<Record<string, number>>>();

function inksIn(protocol: string): Record<string, number> {
  const { periodic } = protocolNamed(protocol).presentation;
  /** Each type with all its names. */
  const types: string[][] = [];
  for (const names of formsOf(protocol).map(messageTypesOf)) {
    const taken = new Set<string[]>();
    for (const name of names) {
      // A form may have two messages of one name, for example a multicast on top of another. They get different inks.
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

/** All forms of a protocol: the textbook form first, the form for real processes last. */
export function formsOf(protocol: string): AnyProtocol[] {
  const { model, node, variants } = protocolNamed(protocol);
  return [model(), ...Object.values(variants).map((variant) => variant.model()), node()];
}

const isSame = (one: string, other: string): boolean => one.endsWith(`.${other}`) || other.endsWith(`.${one}`);

/** The full names of its message types, in the order of their declaration. */
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

// Drawing a protocol's runs: the inks of its messages, and which messages wait for a reply.

type ByName<T> = Readonly<Record<string, T>>;

/** Inks and withheld replies of a protocol. Both are empty if it is not in the registry. */
export function drawnAs(protocol: string): { readonly inks: ByName<number>; readonly withheld: ByName<string> } {
  const withheld = protocolNames.includes(protocol) ? protocolNamed(protocol).presentation.withheld : {};
  return { inks: messageInksOf(protocol), withheld };
}
