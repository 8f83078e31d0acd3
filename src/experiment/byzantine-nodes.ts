/** Byzantine nodes, as people write them. Commands that know none need not load their behaviors. */
import type { NodeId } from "../core/protocol.ts";
import { type BehaviourName, behaviourNamed, behaviours } from "../protocols/byzantine.ts";
import { nodeList, type Read, refuse } from "./written-values.ts";

/** `2`, or `2,4=mute`: the behavior of each Byzantine node, by default `adversary`. */
export const liars: Read<Readonly<Record<NodeId, BehaviourName>>> = (text, option) =>
  Object.fromEntries(
    text.split(",").map((part): [NodeId, BehaviourName] => {
      const [id = "", how = "adversary"] = part.split("=").map((each) => each.trim());
      const behaviour = behaviourNamed(how);
      if (behaviour === undefined || !/^\d{1,15}$/.test(id))
        refuse(
          option,
          `node ids, each with a behavior (${behaviours.join(", ")}) or without one, such as 2,4=mute`,
          text,
        );
      return [Number(id), behaviour];
    }),
  );

/** The behavior of one Byzantine node. */
export const behaviour: Read<BehaviourName> = (text, option) =>
  behaviourNamed(text) ?? refuse(option, `one of ${behaviours.join(", ")}`, text);

/** `7` or `1,15,9`: Byzantine nodes that send anything. */
export const traitors: Read<Readonly<Record<NodeId, BehaviourName>>> = (text, option) =>
  Object.fromEntries(nodeList(text, option).map((node) => [node, "adversary"]));
