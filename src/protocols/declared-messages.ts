/** The messages of a protocol as it runs on real processes, in the order in which it declares them. */
import type { ShapeNode } from "../core/shape.ts";
import { protocolNamed } from "./index.ts";

type Fields = Readonly<Record<string, ShapeNode>>;

/** By their full names, such as `election.answer`: what the page gives each of them its colour by. */
export function messageTypesOf(protocol: string): string[] {
  const { shapes } = protocolNamed(protocol).node();
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
