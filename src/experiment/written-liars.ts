/** Nodes that lie, as people write them. */
import type { NodeId } from "../core/protocol.ts";
import { behaviours } from "../protocols/byzantine.ts";
import { nodeList, type Read, refuse } from "./written-values.ts";

export type NamedLiar = (typeof behaviours)[number];

/** `2`, or `2,4=mute`: how each lies, `adversary` unless it says. */
export const liars: Read<Readonly<Record<NodeId, NamedLiar>>> = (text, word) =>
  Object.fromEntries(
    text.split(",").map((part): [NodeId, NamedLiar] => {
      const [id = "", how = "adversary"] = part.split("=").map((each) => each.trim());
      const behaviour = behaviours.find((each) => each === how);
      if (behaviour === undefined || !/^\d{1,15}$/.test(id))
        refuse(word, `node ids, each with a way to lie (${behaviours.join(", ")}) or none, such as 2,4=mute`, text);
      return [Number(id), behaviour];
    }),
  );

/** `7` or `1,15,9`: they say anything. */
export const traitors: Read<Readonly<Record<NodeId, NamedLiar>>> = (text, word) =>
  Object.fromEntries(nodeList(text, word).map((node) => [node, "adversary"]));
