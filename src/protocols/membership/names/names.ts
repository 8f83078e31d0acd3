/**
 * Names: which elections, locks and channels there are, how each is run, and when one is put away. One that any node uses exists at
 * the others, too: it is announced before its first message, again to nodes that have just started, and to those that ask. Coterie's
 * own; settings go by majority (`settings.ts`), putting away is a commit by all (`putting-away.ts`), after Gray, Notes on Data Base
 * Operating Systems, 1978, §5.8.3.
 *
 * Assumes   crash-recovery nodes; reliable FIFO links between nodes that are up. Of what is remembered over a crash nothing: a node that
 *           has lost it learns it from others. A node that is not suspected has nothing on its way that is older than its last
 *           heartbeat.
 * Safety    nobody agrees to put away what its program uses; what a program uses again is begun anew; what is said under one setting is
 *           taken by nobody who runs another; a node with another setting ends nothing that a majority runs.
 * Liveness  all run a name alike in the end, or of an even number each half its own way; a name that nobody uses is put away at all
 *           nodes, unless one is down, or the lowest does not run it.
 * Cost      N(N − 1) messages to open a name at all nodes; 3(N − 1) to put it away.
 *
 * What runs under a name, and the program that uses it, is the driver's: it is told what is `wanted` and what `differs`, and says
 * what goes and what does not.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { exclude, include } from "../../node-set.ts";
import { type NamesOptions, settledNames } from "./options.ts";
import { declarations } from "./properties.ts";
import { puttingAway } from "./putting-away.ts";
import { giveWay, isOutvoted, join, lookWhetherEstablished, part, yields } from "./settings.ts";
import { admission, type Names, type Running, runningOf, type State } from "./vocabulary.ts";

export type { NamesOptions } from "./options.ts";
export { type Admission, admission, type Forgotten, type Names } from "./vocabulary.ts";

type Ctx = Context<Names>;

/** More names are not remembered as those for which there was no room. */
const MAX_DECLINED = 10_000;

export function names(given?: Partial<NamesOptions>): Protocol<Names> {
  const away = puttingAway(settledNames(given), renew);

  /** Others may have said before how they run it, and run it otherwise since: they announce it again. */
  function begin(state: State, name: string, { setting, forgotten, isEstablished }: Begun, isUsed: boolean, ctx: Ctx) {
    delete state.over[name];
    delete state.declined[name];
    const fellows = [ctx.self];
    const known = { setting, fellows, strangers: [], isEstablished, forgotten, isUsed, idle: 0, asking: null };
    state.running[name] = known;
    ctx.broadcast({ type: "open", name, setting }); // Before its first message.
    away.watch(state, ctx);
    return known;
  }

  function renew(state: State, name: string, before: Running, ctx: Ctx): void {
    const known = begin(state, name, { ...before, isEstablished: false }, true, ctx);
    ctx.emit({ type: "renewed", name, setting: before.setting });
    lookWhetherEstablished(known, name, ctx);
  }

  function announced(state: State, from: NodeId, name: string, setting: string, ctx: Ctx): void {
    const known = runningOf(state, name);
    if (state.isClosed) return; // The others go on without this node.
    if (known === undefined) return ctx.emit({ type: "wanted", name, setting, from });
    if (known.setting === setting) return join(known, name, from, ctx);
    part(known, name, from, ctx);
    ctx.emit({ type: "differs", name, setting, from });
    if (isOutvoted(known, ctx)) giveWay(state, name, from, null, ctx);
  }

  function announce(state: State, name: string, to: NodeId, ctx: Ctx): void {
    const known = runningOf(state, name);
    if (known !== undefined) ctx.send(to, { type: "open", name, setting: known.setting });
  }

  return {
    name: "names",
    init: () => ({ running: {}, over: {}, declined: {}, suspected: [], round: 0, isClosed: false, isSweeping: false }),
    start: (_state, ctx) => ctx.broadcast({ type: "hello" }),
    receive: {
      hello(state, from, _message, ctx) {
        ctx.emit({ type: "met", node: from });
        for (const name of Object.keys(state.running)) announce(state, name, from, ctx);
      },
      inquire(state, from, { name }, ctx) {
        ctx.emit({ type: "parted", name, node: from }); // If it runs it, it has just said how, and nothing waits.
        announce(state, name, from, ctx);
      },
      open: (state, from, { name, setting }, ctx) => announced(state, from, name, setting, ctx),
      refuse(state, from, { name, setting, why }, ctx) {
        const known = runningOf(state, name);
        if (known?.setting !== setting) return; // It has been closed already: another refused it, too.
        ctx.emit({ type: "refused", name, by: from, why });
        part(known, name, from, ctx);
        if (yields(known, ctx)) giveWay(state, name, from, why, ctx);
      },
      full: (_state, from, { name }, ctx) => ctx.emit({ type: "noRoom", name, by: from }),
      ask: (state, from, { name, round }, ctx) => away.asked(state, from, name, round, ctx),
      idle: (state, from, { name, round }, ctx) => away.answered(state, from, name, round, ctx),
      over: (state, _from, { name }, ctx) => away.over(state, name, ctx),
    },
    timeout: { sweep: away.sweep },
    command: {
      run(state, { name, by, ...given }, ctx) {
        if (state.isClosed || runningOf(state, name) !== undefined) return; // It has come about meanwhile.
        const known = begin(state, name, given, false, ctx);
        ctx.emit({ type: "ran", name, setting: given.setting });
        lookWhetherEstablished(known, name, ctx);
        if (by !== null) join(known, name, by, ctx);
      },
      refuse: (_state, { to, name, setting, why }, ctx) => ctx.send(to, { type: "refuse", name, setting, why }),
      decline(state, { name, to }, ctx) {
        if (Object.keys(state.declined).length < MAX_DECLINED) state.declined[name] = true;
        ctx.send(to, { type: "full", name });
      },
      inquire(state, { name, of }, ctx) {
        announce(state, name, of, ctx);
        ctx.send(of, { type: "inquire", name });
      },
      use(state, { name }) {
        const known = runningOf(state, name);
        if (known !== undefined) Object.assign(known, { isUsed: true, idle: 0 });
      },
      rest(state, { name }) {
        const known = runningOf(state, name);
        if (known !== undefined) known.isUsed = false;
      },
      forget(state, { name }, ctx) {
        const known = runningOf(state, name);
        if (known !== undefined && known.forgotten === "alone" && !known.isUsed) away.putAway(state, name, ctx);
      },
      arrived(state, { name, from, word }, ctx) {
        ctx.emit({ type: "admitted", name, from, word, how: admission(state, name, from) });
      },
      suspect: (state, { node }) => include(state.suspected, node),
      restore: (state, { node }) => exclude(state.suspected, node),
      close(state, _command, ctx) {
        state.isClosed = true;
        ctx.cancelTimer("sweep");
        state.isSweeping = false;
      },
    },
    ...declarations,
  };
}

type Begun = Pick<Running, "setting" | "forgotten" | "isEstablished">;
