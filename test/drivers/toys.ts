/** Protocols that change or reuse messages, records and states in ways that must not affect other nodes. */
import { list, natural, oneOf, type Protocol } from "../../src/core/index.ts";

const bare = { source: "none", assumes: [], properties: [], costs: [], view: () => ({ role: "toy" }) } as const;

export type Changing = {
  state: { own: number[]; got: number[][]; noted: number[][] };
  message: { type: "list"; list: number[] };
  command: { type: "begin"; list: number[] };
  event: { type: "sent"; list: number[] };
  record: { type: "noted"; list: number[] };
};

/** Sends, emits and journals the same list repeatedly, and changes it between uses. */
export const changesWhatItSent: Protocol<Changing> = {
  ...bare,
  name: "changes-what-it-sent",
  init: () => ({ own: [], got: [], noted: [] }),
  receive: { list: (state, _from, message) => void state.got.push(message.list) },
  command: {
    begin(state, _command, ctx) {
      const message = { type: "list" as const, list: state.own };
      const record = { type: "noted" as const, list: state.own };
      const event = { type: "sent" as const, list: state.own };
      for (const number of [1, 2]) {
        state.own.push(number);
        ctx.persist(record);
        ctx.emit(event);
        ctx.send(1, message);
        ctx.broadcast(message);
      }
      state.own.push(3);
      message.list = [99];
    },
  },
  replay: { noted: (state, record) => void state.noted.push(record.list) },
  shapes: {
    message: { list: { list: list(natural, 9) } },
    command: { begin: { list: list(natural, 9) } },
    record: { noted: { list: list(natural, 9) } },
  },
};

/** Signs and journals every list that it receives in a message, a command or a record. */
export const changesWhatItGot: Protocol<Changing> = {
  ...changesWhatItSent,
  name: "changes-what-it-got",
  receive: {
    list(state, _from, message, ctx) {
      message.list.push(ctx.self);
      state.got.push(message.list);
    },
  },
  command: {
    begin(state, command, ctx) {
      command.list.push(7);
      state.own = command.list;
      ctx.persist({ type: "noted", list: command.list });
      ctx.broadcast({ type: "list", list: command.list });
    },
  },
  replay: {
    noted(state, record) {
      record.list.push(8);
      state.noted.push(record.list);
    },
  },
  properties: [
    {
      name: "one's own sign",
      claim: "no node finds another's sign in a list",
      when: "always",
      holds: ({ alive, state }) => alive.every((node) => state(node).got.every((each) => each.length === 3)),
    },
  ],
};

export type Naming = {
  state: { seen: Record<string, true>; first: string | null; fields: string[] };
  message: { type: "name"; name: "a" | "b"; number: number } | { type: "look" };
  command: { type: "say"; name: "a" | "b" };
};

/**
 * Node 0 records which of two names comes first in an object. Nothing else in the state shows the order of the names.
 */
export const goesThroughKeys: Protocol<Naming> = {
  ...bare,
  name: "goes-through-keys",
  init: () => ({ seen: {}, first: null, fields: [] }),
  receive: {
    name(state, _from, message, ctx) {
      state.fields = Object.keys(message);
      state.seen[message.name] = true;
      if (Object.keys(state.seen).length === 2) ctx.send(0, { type: "look" });
    },
    look(state) {
      state.first = Object.keys(state.seen)[0] as string;
    },
  },
  command: {
    say(_state, { name }, ctx) {
      // The fields are in a different order from the declared shape, and the two messages also differ from each other.
      ctx.send(0, name === "a" ? { number: 1, name, type: "name" } : { name, type: "name", number: 1 });
    },
  },
  shapes: {
    message: { name: { name: oneOf("a", "b"), number: natural }, look: {} },
    command: { say: { name: oneOf("a", "b") } },
  },
  properties: [
    { name: "a first", claim: "a may be the first", when: "sometimes", holds: ({ state }) => state(0).first === "a" },
    { name: "b first", claim: "b may be the first", when: "sometimes", holds: ({ state }) => state(0).first === "b" },
    {
      name: "fields in order",
      claim: "the fields of a message come in the order of its shape",
      when: "always",
      holds: ({ alive, state }) =>
        alive.every((node) => ["", "type name number"].includes(state(node).fields.join(" "))),
    },
  ],
};
