/**
 * An algorithm under a name, as a member runs it: what `join()` embeds of it, which begins when the name is run and ends when it is
 * put away or given up. Names say of each message whether the algorithm is to have it: what comes from a node that has not announced
 * the name waits, what was said under another setting is dropped.
 *
 * What outlives it is its floor: the promise to help no lower epoch, with which whatever runs next under the name begins. Of a lock that
 * a server of the member's epochs serves, it is the number of its run, and the highest token that was seen here.
 */
import type { Context, NodeId, Property, Protocol, Tagged, World } from "../../../core/protocol.ts";
import { natural, oneOf, text, variants } from "../../../core/shape.ts";
import { changedContext, mapped } from "../../contexts.ts";
import type { AnyProtocol, Embedded } from "../../entry.ts";
import type { Admission } from "../../membership/names/vocabulary.ts";

/** What another node has said, and under which setting: nobody here looks at that but properties. */
interface Said {
  from: NodeId;
  setting: string;
  body: Tagged;
}

interface Heeding {
  /** Those that the algorithm has running. Ascending. */
  timers: string[];
  /** The last that was journalled. */
  run: number;
  /** The highest that this node has been given, or has given, since the name is run. */
  token: number;
  /** What was said last of how it stands. */
  isQuiet: boolean;
  epoch: number;
}

export type UnderName = {
  state: {
    /** How the name is run; null: it is not. */
    setting: string | null;
    algorithm: object;
    /** What names are being asked about. */
    arrived: Said[];
    /** What waits until its sender has announced the name. */
    held: Said[];
    /** The highest epoch that has been promised under the name, be it by an algorithm that has ended. */
    floor: number;
    /** Of a lock that heeds the member's epochs; null of others. */
    heeding: Heeding | null;
  };
  message: { type: "message"; setting: string; body: Tagged };
  timer: string;
  command: /** These and the algorithm's own. */
    | { type: "begin"; setting: string }
    | { type: "end" }
    /** It is run otherwise from now on. */
    | { type: "giveUp" }
    | { type: "admitted"; from: NodeId; word: string; how: Admission }
    | { type: "joined"; node: NodeId }
    | { type: "parted"; node: NodeId };
  event: /** These and the algorithm's own. */
    | { type: "arrived"; from: NodeId; word: string }
    /** Its sender has not said how it runs the name, as far as is known here. */
    | { type: "early"; from: NodeId }
    /** The algorithm is given what was said under a setting. */
    | { type: "took"; setting: string; runs: string | null }
    /** Of a lock that heeds epochs: whether it has nothing to do, and the highest epoch that it has heard of. */
    | { type: "stands"; isQuiet: boolean; epoch: number }
    | { type: "retired"; token: number }
    /** What was granted in this epoch is no longer known here. */
    | { type: "exhausted"; epoch: number };
  record: /** These and the algorithm's own. */ { type: "ended"; floor: number };
};

type State = UnderName["state"];

// What the algorithm says and is told passes through.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Any = any;

/** Whether the leader of the member's epoch serves it. */
export const heedsEpochs = ({ wires }: Embedded, options: object): boolean => Object.hasOwn(wires(options), "election");

/** @param isTimed whether the algorithm's timers run: otherwise nobody under the name ever gives up or asks again. */
export function underName(embedded: Embedded, options: object, isTimed: boolean): Protocol<UnderName> {
  const { make, floor } = embedded;
  const isServed = heedsEpochs(embedded, options);
  const algorithm = make(options) as AnyProtocol & Record<"timeout" | "command" | "replay" | "receive" | "shapes", Any>;
  const { timeout = {}, command = {}, replay = {}, receive = {}, shapes } = algorithm;

  /** Records of epochs are promises. */
  function note(state: State, record: Tagged): void {
    const { epoch = 0, run = 0 } = record as { epoch?: number; run?: number };
    if (floor !== null) state.floor = Math.max(state.floor, epoch);
    if (state.heeding !== null) state.heeding.run = Math.max(state.heeding.run, run);
  }

  function run(state: State, ctx: Context<Any>, handle: (own: Any, ctx: Context<Any>) => void): void {
    const { setting } = state;
    if (setting === null) return; // It has ended.
    const say = (body: Tagged) => ({ type: "message", setting, body });
    const changes: Partial<Context<Any>> = {
      send: (to, body) => ctx.send(to, say(body)),
      broadcast: (body) => ctx.broadcast(say(body)),
      persist(record) {
        note(state, record);
        ctx.persist(record);
      },
      compact(records) {
        for (const record of records) note(state, record);
        ctx.compact(records);
      },
      ...(isTimed ? {} : { setTimer() {} }),
    };
    const changed = changedContext(ctx, changes);
    if (state.heeding === null) return handle(state.algorithm, changed);
    handle(state.algorithm, heeded(state.heeding, changed));
    stand(state.heeding, algorithm.view(state.algorithm, ctx.self).term ?? 0, ctx);
  }

  function arrive(state: State, said: Said, ctx: Context<UnderName>): void {
    state.arrived.push(said);
    ctx.emit({ type: "arrived", from: said.from, word: said.setting });
  }

  function take(state: State, { from, setting, body }: Said, ctx: Context<UnderName>): void {
    ctx.emit({ type: "took", setting, runs: state.setting });
    run(state, ctx, (inner, changed) => receive[body.type]?.(inner, from, body, changed));
  }

  /** What binds whatever runs next under the name: its journal begins with that. */
  function outliving(state: State, self: NodeId): Tagged[] {
    if (state.heeding !== null && state.heeding.run > 0) return [{ type: "run", run: state.heeding.run } as Tagged];
    if (state.floor === 0 || floor === null) return [];
    return [floor(state.floor, self)];
  }

  function end(state: State, _command: Tagged, ctx: Context<UnderName>): void {
    for (const timer of Object.keys(timeout)) ctx.cancelTimer(timer);
    state.setting = null;
    state.algorithm = algorithm.init(ctx.self, ctx.peers);
    const first = outliving(state, ctx.self);
    for (const record of first) replay[record.type]?.(state.algorithm, record);
    if (state.heeding !== null) {
      Object.assign(state.heeding, { timers: [], token: 0 });
      stand(state.heeding, 0, ctx);
    }
    if (Object.keys(replay).length > 0) ctx.compact([{ type: "ended", floor: state.floor }, ...first] as never);
  }

  const own: Protocol<UnderName> = {
    name: algorithm.name,
    init: (self, peers) => ({
      setting: null,
      algorithm: algorithm.init(self, peers),
      arrived: [],
      held: [],
      floor: 0,
      heeding: isServed ? { timers: [], run: 0, token: 0, isQuiet: true, epoch: 0 } : null,
    }),
    receive: {
      message: (state, from, { setting, body }, ctx) => arrive(state, { from, setting, body }, ctx),
    },
    timeout: Object.fromEntries(
      Object.entries<Any>(timeout).map(([timer, handle]) => [
        timer,
        (state: State, ctx: Context<Any>) => {
          if (state.heeding !== null) stopped(state.heeding, timer);
          run(state, ctx, handle);
        },
      ]),
    ),
    command: {
      ...(mapped(
        command,
        (handle) => (state: State, given: Tagged, ctx: Context<Any>) =>
          run(state, ctx, (inner, changed) => handle(inner, given, changed)),
      ) as Record<never, never>),
      begin(state, { setting }, ctx) {
        state.setting = setting;
        run(state, ctx, (inner, changed) => algorithm.start?.(inner, changed));
      },
      end(state, command, ctx) {
        if (state.heeding !== null) ctx.emit({ type: "retired", token: state.heeding.token });
        end(state, command, ctx);
      },
      giveUp(state, command, ctx) {
        const { epoch } = state.heeding ?? {};
        end(state, command, ctx);
        // Opened anew, it would count its grants of this epoch from one.
        if (epoch !== undefined) ctx.emit({ type: "exhausted", epoch });
      },
      admitted(state, { how }, ctx) {
        const said = state.arrived.shift();
        if (said === undefined || how === "drop") return;
        if (how === "take") return take(state, said, ctx);
        const { from } = said;
        if (!state.held.some((other) => other.from === from)) ctx.emit({ type: "early", from });
        state.held.push(said);
      },
      joined(state, _command, ctx) {
        for (const said of state.held.splice(0)) arrive(state, said, ctx);
      },
      parted(state, { node }) {
        state.held = state.held.filter(({ from }) => from !== node);
      },
    },
    replay: {
      ...(mapped(replay, (handle) => (state: State, record: Tagged) => {
        note(state, record);
        handle(state.algorithm, record);
      }) as Record<never, never>),
      ended(state, record) {
        state.floor = record.floor;
      },
    },
    shapes: shapesWith(shapes),
    source: algorithm.source,
    assumes: algorithm.assumes,
    properties: algorithm.properties.filter(({ when }) => when === "always").map(whereItRuns),
    costs: algorithm.costs,
    view: ({ algorithm: state }, self) => algorithm.view(state, self),
  };
  return own;
}

/** What the member sees of what the algorithm does. */
function heeded(heeding: Heeding, ctx: Context<Any>): Context<Any> {
  const see = (said: Tagged): void => {
    const { token = 0 } = said as { token?: number };
    heeding.token = Math.max(heeding.token, token);
  };
  return changedContext(ctx, {
    send(to, body) {
      see(body);
      ctx.send(to, body);
    },
    broadcast(body) {
      see(body);
      ctx.broadcast(body);
    },
    emit(event, until) {
      see(event);
      ctx.emit(event, until);
    },
    setTimer(timer, duration) {
      stopped(heeding, timer);
      heeding.timers = [...heeding.timers, timer].sort();
      ctx.setTimer(timer, duration);
    },
    cancelTimer(timer) {
      stopped(heeding, timer);
      ctx.cancelTimer(timer);
    },
  });
}

function stopped(heeding: Heeding, timer: string): void {
  heeding.timers = heeding.timers.filter((other) => other !== timer);
}

function stand(heeding: Heeding, epoch: number, ctx: Context<UnderName>): void {
  const isQuiet = heeding.timers.length === 0;
  if (isQuiet === heeding.isQuiet && epoch === heeding.epoch) return;
  Object.assign(heeding, { isQuiet, epoch });
  ctx.emit({ type: "stands", isQuiet, epoch });
}

/** What names and other nodes say to it, beside what the algorithm is told. */
const shapesWith = (own: Any): Protocol<UnderName>["shapes"] => ({
  message: { message: { setting: text(10_000), body: variants(own.message ?? {}) } },
  command: {
    ...own.command,
    begin: { setting: text(10_000) },
    end: {},
    giveUp: {},
    admitted: { from: natural, word: text(10_000), how: oneOf<Admission>("take", "hold", "drop") },
    joined: { node: natural },
    parted: { node: natural },
  },
  record: { ...own.record, ended: { floor: natural } },
});

/** What an algorithm promises, of the nodes that run it. */
function whereItRuns(property: Property<Any>): Property<UnderName> {
  const { holds } = property as { holds(world: World<object>): boolean };
  return {
    ...property,
    holds({ alive, state, ...world }: World<State>) {
      return holds({
        ...world,
        alive: alive.filter((node) => state(node).setting !== null),
        state: (node) => state(node).algorithm,
      });
    },
  };
}
