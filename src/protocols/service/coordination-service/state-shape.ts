/** The shape of a replica's data, for validating data from a file. */
import type { NodeId } from "../../../core/protocol.ts";
import {
  boolean,
  list,
  natural,
  nullable,
  oneOf,
  perNode,
  problem,
  real,
  type Shape,
  struct,
  text,
} from "../../../core/shape.ts";
import { MAX_SNAPSHOT_BYTES } from "../../consensus/family/replicated-log.ts";
import { keyEventShape, keyValueShape } from "../keyspace/shapes.ts";
import type { Deletion, Keyspace, Lease } from "../keyspace/store.ts";
import { keysOf, type Table } from "../keyspace/table.ts";
import { memberListShape } from "./member-words.ts";
import {
  type GroupMember,
  MAX_NAME_BYTES,
  MAX_NOTE_BYTES,
  MAX_SETTING_BYTES,
  refusalShape,
  resultShape,
} from "./operations.ts";
import type {
  Barrier,
  Data,
  Group,
  Held,
  Item,
  Lock,
  MachineState,
  Queue,
  Reply,
  Session,
  Staged,
  Taken,
} from "./state.ts";

/** An upper bound on the length of any list in a snapshot. */
const MANY = MAX_SNAPSHOT_BYTES;
const name = text(MAX_NAME_BYTES);
const value = text(MAX_SNAPSHOT_BYTES);

const table = <V>(keys: Shape<string>, values: Shape<V>): Shape<Table<V>> =>
  struct<Table<V>>({
    size: natural,
    blocks: list(struct<Table<V>["blocks"][number]>({ keys: list(keys, MANY), values: list(values, MANY) }), MANY),
  });

const waiterFields = {
  session: natural,
  wait: natural,
  mode: oneOf<Held["mode"]>("exclusive", "shared"),
  permits: natural,
  note: text(MAX_NOTE_BYTES),
};
const waiter = struct<Lock["waiters"][number]>(waiterFields);
const held = struct<Held>({ ...waiterFields, token: natural });
const staged = struct<Staged>({ parts: natural, text: value, bytes: natural, refusal: nullable(refusalShape) });
const session = struct<Session>({
  id: natural,
  member: natural,
  life: natural,
  ttlMs: real,
  seen: natural,
  applied: natural,
  replies: list(struct<Reply>({ revision: natural, result: resultShape }), MANY),
  staged: nullable(staged),
});
const arrival = struct<Barrier["arrivals"][number]>({ session: natural, wait: natural });
const itemFields = { id: natural, value };
const queue = struct<Queue>({
  items: list(struct<Item>(itemFields), MANY),
  taken: list(struct<Taken>({ ...itemFields, session: natural, wait: natural, token: natural }), MANY),
  takers: list(arrival, MANY),
});
/** The shape of a machine. Its state may be any plain data, so it is validated as JSON. */
const machine = struct<MachineState>({
  state: value,
  isDefined: boolean,
  pending: list(value, MANY),
  pendingBytes: natural,
  bytes: natural,
  unmeasured: natural,
});

const dataShape = struct<Data>({
  version: natural,
  keyspace: struct<Keyspace>({
    revision: natural,
    compacted: natural,
    trimmed: natural,
    deletions: list(struct<Deletion>({ from: value, to: value, revision: natural }), MANY),
    keys: table(value, keyValueShape),
    history: list(keyEventShape, MANY),
    historyBytes: natural,
    leases: table(value, struct<Lease>({ ttl: natural, renewal: natural, keys: list(value, MANY) })),
    renewals: natural,
    bytes: natural,
  }),
  begun: natural,
  sessions: list(session, MANY),
  lives: perNode(natural, MANY) as Shape<Record<NodeId, number>>,
  forgottenClients: natural,
  members: nullable(memberListShape),
  bytes: natural,
  locks: table(name, struct<Lock>({ capacity: natural, holders: list(held, MANY), waiters: list(waiter, MANY) })),
  barriers: table(name, struct<Barrier>({ parties: natural, arrivals: list(arrival, MANY) })),
  queues: table(name, queue),
  machines: table(name, machine),
  groups: table(
    name,
    struct<Group>({
      setting: text(MAX_SETTING_BYTES),
      members: list(struct<GroupMember>({ session: natural, member: natural, wait: natural, spoken: natural }), MANY),
    }),
  ),
});

/** Returns the first problem with unvalidated replica data, as a sentence. Null if the data is valid. */
export function dataProblem(given: unknown): string | null {
  const data = { ...(given as Data) };
  return problem(dataShape, { ...data, machines: inText(data.machines) }, "data") ?? tableProblem(data);
}

/** Replaces each machine's state with its JSON. */
function inText(machines: unknown): unknown {
  const { blocks } = (machines ?? {}) as Partial<Data["machines"]>;
  if (!Array.isArray(blocks)) return machines;
  const inBlock = (block: Partial<(typeof blocks)[number]>): unknown =>
    !Array.isArray(block?.values)
      ? block
      : { ...block, values: block.values.map((each) => ({ ...each, state: JSON.stringify(each?.state) ?? "null" })) };
  return { ...(machines as object), blocks: blocks.map(inBlock) };
}

function tableProblem({ keyspace, locks, barriers, queues, machines, groups }: Data): string | null {
  const tables: readonly Table<unknown>[] = [keyspace.keys, keyspace.leases, locks, barriers, queues, machines, groups];
  const isSound = (table: Table<unknown>): boolean => {
    const keys = keysOf(table);
    const isAscending = keys.every((key, at) => at === 0 || (keys[at - 1] as string) < key);
    const areWhole = table.blocks.every((block) => block.keys.length > 0 && block.keys.length === block.values.length);
    return isAscending && areWhole && keys.length === table.size;
  };
  return tables.every(isSound) ? null : "expected each table's names to be in order, with a value for each";
}
