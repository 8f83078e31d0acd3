/** Nodes that lie, as people write them. */
import type { NodeId } from "../core/protocol.ts";
import { type BehaviourName, behaviourNamed, behaviours } from "../protocols/byzantine.ts";
import { nodeList, type Read, refuse } from "./written-values.ts";

/** `2`, or `2,4=mute`: how each lies, `adversary` unless it says. */
export const liars: Read<Readonly<Record<NodeId, BehaviourName>>> = (text, word) =>
  Object.fromEntries(
    text.split(",").map((part): [NodeId, BehaviourName] => {
      const [id = "", how = "adversary"] = part.split("=").map((each) => each.trim());
      const behaviour = behaviourNamed(how);
      if (behaviour === undefined || !/^\d{1,15}$/.test(id))
        refuse(word, `node ids, each with a way to lie (${behaviours.join(", ")}) or none, such as 2,4=mute`, text);
      return [Number(id), behaviour];
    }),
  );

/** How one node lies. */
export const behaviour: Read<BehaviourName> = (text, word) =>
  behaviourNamed(text) ?? refuse(word, `one of ${behaviours.join(", ")}`, text);

/** `7` or `1,15,9`: they say anything. */
export const traitors: Read<Readonly<Record<NodeId, BehaviourName>>> = (text, word) =>
  Object.fromEntries(nodeList(text, word).map((node) => [node, "adversary"]));
