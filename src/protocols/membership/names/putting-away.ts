/**
 * Puts away what nobody uses: each node by itself what it may forget alone, all of them at once what they rely on each other for.
 * The node with the lowest id leads: once nobody has used a name there for a while it asks the others, each of which answers if
 * nobody has used it there either, and when all have, tells them that it is over. While any node is suspected nothing is put away by
 * all. A node that uses the name again after its answer opens it anew when it hears that it is over.
 */
import type { Context, NodeId } from "../../../core/protocol.ts";
import { include } from "../../node-set.ts";
import type { NamesOptions } from "./options.ts";
import { type Names, type Running, runningOf, type State } from "./vocabulary.ts";

type Ctx = Context<Names>;

/** @param renew begins a name anew that the program uses again. */
export function puttingAway(
  options: NamesOptions,
  renew: (state: State, name: string, before: Running, ctx: Ctx) => void,
) {
  const { sweepMs, idleSweeps, askSweeps, graceSweeps } = options;

  const isIdle = ({ isUsed, idle }: Running): boolean => !isUsed && idle >= idleSweeps;

  /** Whether nobody uses it here, nor has for a while; true of what is not run here. */
  function mayEnd(state: State, name: string): boolean {
    const known = runningOf(state, name);
    return known === undefined || (known.forgotten === "together" && isIdle(known));
  }

  function putAway(state: State, name: string, ctx: Ctx): void {
    delete state.running[name];
    state.declined = {}; // There is room again.
    ctx.emit({ type: "putAway", name });
  }

  /** All have agreed. If it has been used since this node was asked, it begins anew, as it does at the others. */
  function end(state: State, name: string, ctx: Ctx): void {
    state.over[name] = 0;
    watch(state, ctx);
    const known = runningOf(state, name);
    if (known?.forgotten !== "together") return;
    if (known.isUsed) renew(state, name, known, ctx);
    else putAway(state, name, ctx);
  }

  function conclude(state: State, name: string, known: Running, ctx: Ctx): void {
    known.asking = null;
    if (state.suspected.length > 0 || !isIdle(known)) return;
    ctx.emit({ type: "agreed", name });
    ctx.broadcast({ type: "over", name });
    end(state, name, ctx);
  }

  /** Of what nobody here uses. */
  function consider(state: State, name: string, known: Running, ctx: Ctx): void {
    const leads = ctx.peers.every((peer) => peer > ctx.self);
    if (state.suspected.length > 0 || !leads) return;
    if (known.asking !== null && known.asking.age < askSweeps) return;
    state.round += 1;
    known.asking = { round: state.round, age: 0, answered: [] };
    ctx.broadcast({ type: "ask", name, round: state.round });
    if (ctx.peers.length === 0) conclude(state, name, known, ctx);
  }

  function watch(state: State, ctx: Ctx): void {
    if (state.isSweeping) return;
    state.isSweeping = true;
    ctx.setTimer("sweep", sweepMs);
  }

  function age(state: State): void {
    for (const [name, sweeps] of Object.entries(state.over)) {
      if (sweeps + 1 < graceSweeps) state.over[name] = sweeps + 1;
      else delete state.over[name];
    }
    for (const known of Object.values(state.running)) {
      if (!known.isUsed) known.idle = Math.min(known.idle + 1, idleSweeps);
      if (known.asking === null) continue;
      known.asking.age += 1;
      if (known.asking.age >= 2 * askSweeps) known.asking = null;
    }
  }

  return {
    putAway,
    watch,
    isIdle,

    sweep(state: State, ctx: Ctx): void {
      state.isSweeping = false;
      if (state.isClosed) return;
      age(state);
      for (const [name, known] of Object.entries(state.running)) {
        if (!isIdle(known)) continue;
        if (known.forgotten === "together") consider(state, name, known, ctx);
        else if (known.forgotten === "alone") putAway(state, name, ctx);
      }
      if (Object.keys(state.running).length + Object.keys(state.over).length > 0) watch(state, ctx);
    },

    asked(state: State, from: NodeId, name: string, round: number, ctx: Ctx): void {
      if (state.isClosed || state.suspected.length > 0 || !mayEnd(state, name)) return; // It is asked again.
      ctx.emit({ type: "agreed", name });
      ctx.send(from, { type: "idle", name, round });
    },

    answered(state: State, from: NodeId, name: string, round: number, ctx: Ctx): void {
      const known = runningOf(state, name);
      if (state.isClosed || known === undefined || known.asking?.round !== round) return; // Of an earlier round.
      const { answered } = known.asking;
      include(answered, from);
      if (ctx.peers.every((peer) => answered.includes(peer))) conclude(state, name, known, ctx);
    },

    over(state: State, name: string, ctx: Ctx): void {
      if (!state.isClosed) end(state, name, ctx);
    },
  };
}
