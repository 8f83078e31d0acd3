/**
 * One multicast for each of several groups: a node runs it once for each group that it is in, and no run knows of the
 * others. So what it promises it keeps within each group, and nothing across them: FIFO order asks for no more.
 */
import { assemble } from "../../../core/assemble.ts";
import type { NodeId, Protocol, Tagged, Vocabulary } from "../../../core/protocol.ts";
import { natural, text } from "../../../core/shape.ts";
import { contexts, withContext } from "../../contexts.ts";
import { asLayer } from "../parts/as-layer.ts";
import { MAX_PAYLOAD_BYTES } from "../parts/group.ts";
import { type GroupMulticast, type GroupsOptions, groupsGiven, isMember } from "./groups.ts";

// Inside, parts are looked up by name; the types around keep callers honest.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/** `id` names a message by what the run of its group calls it, and the group: `0.1@2`. */
export type EachGroup = GroupMulticast & { state: Record<string, object>; message: { type: string; body: object } };

const partOf = (group: number): string => `group ${group}`;

export function eachGroup<M extends Vocabulary>(
  order: () => Protocol<M>,
  given?: Partial<GroupsOptions>,
): Protocol<EachGroup> {
  const { name } = order();
  const groups = groupsGiven(given, name);
  const parts = Object.fromEntries(groups.map((members, group) => [partOf(group), within(members, order() as Any)]));
  const whole = assemble<Any>(name, parts, {}, { face: partOf(0) }) as Any;
  const layer = asLayer<EachGroup>(whole, {
    commands: {
      send: ({ payload, group }: { payload: string; group: number }, self) =>
        isMember(groups, group, self) ? { part: partOf(group), body: { type: "send", payload } as Tagged } : null,
    },
    shapes: { send: { payload: text(MAX_PAYLOAD_BYTES), group: natural } },
    event: (part, body) => ({ ...body, id: `${body.id}@${groups.findIndex((_, group) => partOf(group) === part)}` }),
  });
  return { ...layer, properties: [] }; // Those of its workload: a run's own speak of all nodes.
}

/** The same protocol among some of the nodes. A node that is not among them has nobody to talk to. */
function within(members: readonly NodeId[], order: Protocol<Any>): Protocol<Any> {
  const othersOf = (self: NodeId): NodeId[] =>
    members.includes(self) ? members.filter((member) => member !== self) : [];
  const inside = contexts((ctx) => ({
    peers: othersOf(ctx.self),
    broadcast(message) {
      for (const other of othersOf(ctx.self)) ctx.send(other, message);
    },
  }));
  return { ...withContext(order, inside), init: (self: NodeId) => order.init(self, othersOf(self)) };
}
