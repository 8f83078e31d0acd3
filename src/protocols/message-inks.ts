/** Which of a protocol's messages has which ink: the same in all forms of it, and wherever it is drawn. */
import type { ShapeNode } from "../core/shape.ts";
import { type AnyProtocol, protocolNamed, protocolNames } from "./index.ts";

type Fields = Readonly<Record<string, ShapeNode>>;

/**
 * By full names such as `election.answer`, the place in the list of inks. The textbook's messages come first; those that
 * only keep coming are last. What a hardened or assembled form calls `mutex.request` is the textbook's `request`.
 * Empty for what is not in the registry.
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
  /** One type by all its names. */
  const types: string[][] = [];
  for (const names of formsOf(protocol).map(messageTypesOf)) {
    const taken = new Set<string[]>();
    for (const name of names) {
      // A form that has two of them, such as the multicast below another's, draws them apart.
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

/** All forms in which a protocol runs: the textbook's first, that of real processes last. */
export function formsOf(protocol: string): AnyProtocol[] {
  const { model, node, variants } = protocolNamed(protocol);
  return [model(), ...Object.values(variants).map((variant) => variant.model()), node()];
}

const isSame = (one: string, other: string): boolean => one.endsWith(`.${other}`) || other.endsWith(`.${one}`);

/** What it sends, by full names, in the order in which it declares them. */
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

// How pictures of a protocol's runs are drawn: what its messages look like, and which of them wait for an answer.

type ByName<T> = Readonly<Record<string, T>>;

/** Nothing of its own for what is not in the registry. */
export function drawnAs(protocol: string): { readonly inks: ByName<number>; readonly withheld: ByName<string> } {
  const withheld = protocolNames.includes(protocol) ? protocolNamed(protocol).presentation.withheld : {};
  return { inks: messageInksOf(protocol), withheld };
}
