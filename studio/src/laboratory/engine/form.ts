/** Builds the form of a run or check: the command-line options and the algorithm's options. */
import type { ShapeNode } from "../../../../src/core/shape.ts";
import { optionsFor, workloadOptions } from "../../../../src/experiment/experiment.ts";
import { protocolNamed } from "../../../../src/protocols/index.ts";
import { type DeclaredOption, declaredOptions } from "../../../../src/protocols/options.ts";
import type { Field, Form, OptionField } from "./answers.ts";

/** Options that are not listed, because they have a field of their own or concern threads and files. */
const elsewhere = new Set(["variant", "for", "workers", "maxMemory", "options"]);

export function formOf(protocol: string, variant: string): Form {
  const { variants, family, onRing, model } = protocolNamed(protocol);
  const ofFamily = new Set<string>([family.verb ?? "", family.count ?? ""]);
  const others = new Set(Object.keys(workloadOptions));
  if (family.count === "commands") ofFamily.add("machine");
  if (family.refuse !== undefined) ofFamily.add("voteNo");
  if (protocol === "byzantine-generals") ofFamily.add("traitors").add("order");
  const isOffered = (word: string): boolean =>
    !elsewhere.has(word) && (word !== "ring" || onRing !== null) && (!others.has(word) || ofFamily.has(word));
  const fields = (use: "simulate" | "explore"): Field[] =>
    Object.entries(optionsFor[use])
      .filter(([word]) => isOffered(word))
      .map(([word, { help, value, values }]) => ({
        word,
        value,
        values: values ?? [],
        help: typeof help === "string" ? help : help[use],
      }));
  return {
    run: fields("simulate"),
    check: fields("explore"),
    options: declaredOptions(variants[variant]?.model ?? model).map(optionField),
    variants: Object.entries(variants).map(([name, { summary }]) => ({ name, summary })),
  };
}

function optionField({ path, name, shape, default: preset, help, range }: DeclaredOption): OptionField {
  const least = shape.kind === "natural" ? 0 : null;
  const [min, max] = [range.min ?? range.above ?? least, range.max ?? range.below ?? null];
  return { path: [...path, name], preset, help, min, max, ...kindOf(shape) };
}

function kindOf(shape: ShapeNode): Pick<OptionField, "kind" | "values"> {
  const plain = (kind: OptionField["kind"], values: readonly string[] = []) => ({ kind, values });
  switch (shape.kind) {
    case "natural":
      return plain("whole");
    case "real":
      return plain("number");
    case "boolean":
      return plain("switch");
    case "oneOf":
      return plain("choice", shape.values);
    case "text":
      return plain("text");
    case "nullable":
      return kindOf(shape.value);
    case "list":
      return plain(shape.items.kind === "natural" ? "nodes" : "json");
    default:
      return plain("json");
  }
}
