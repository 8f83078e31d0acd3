/**
 * Players that cheat, one for each way that there is: for tests, and to see them caught. They sign for themselves alone, as anybody
 * can. What they remember is no part of their state, so they are not for the checker.
 */
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { type Signed, sign } from "../../../core/signatures.ts";
import { contexts, withContext } from "../../contexts.ts";
import { type Commitment, type Ctx, commitmentShape, hashOf, type Lockstep, openingShape } from "./vocabulary.ts";

export const cheats = ["look-ahead", "wrong-reveal", "silence", "equivocation", "replay"] as const;
export type Cheat = (typeof cheats)[number];

type Message = Lockstep["message"];
/** What it has committed to in its first turn. */
type Memory = { first: string | null };

/** The same player, who cheats. @param instead another action than the one that it has committed to */
export function cheating(
  protocol: Protocol<Lockstep>,
  how: Cheat,
  instead: (action: string) => string,
): Protocol<Lockstep> {
  const change = (ctx: Ctx): Partial<Ctx> => {
    const memory: Memory = { first: null };
    const send = (to: NodeId, message: Message): void => {
      const altered = ways[how](message, to, ctx, memory, instead);
      if (altered !== null) ctx.send(to, altered);
    };
    return {
      send,
      broadcast: (message) => {
        for (const peer of ctx.peers) send(peer, message);
      },
    };
  };
  return withContext(protocol, contexts(change as never)) as Protocol<Lockstep>;
}

type Way = (
  message: Message,
  to: NodeId,
  ctx: Ctx,
  memory: Memory,
  instead: (action: string) => string,
) => Message | null;

const ways: Readonly<Record<Cheat, Way>> = {
  /** Waits with its commitment for the actions of the others. */
  "look-ahead": (message) => (message.type === "commit" || message.type === "echo" ? null : message),
  "wrong-reveal": (message, _to, ctx, _memory, instead) => {
    if (message.type !== "reveal" || message.statement.by !== ctx.self) return message;
    const { value } = message.statement;
    const statement = sign(ctx, openingShape, { ...value, action: instead(value.action) });
    return { type: "reveal", statement };
  },
  silence: (message) => (message.type === "reveal" ? null : message),
  equivocation: (message, to, ctx) => {
    if (message.type !== "commit" || message.statement.by !== ctx.self || to === ctx.peers[0]) return message;
    return { type: "commit", statement: another(message.statement, ctx) };
  },
  replay: (message, _to, ctx, memory) => {
    if (message.type !== "commit" || message.statement.by !== ctx.self) return message;
    const { value } = message.statement;
    memory.first ??= value.hash;
    return { type: "commit", statement: sign(ctx, commitmentShape, { ...value, hash: memory.first }) };
  },
};

function another({ by, value }: Signed<Commitment>, ctx: Ctx): Signed<Commitment> {
  const { game, turn } = value;
  const hash = hashOf({ by, value: { game, turn, nonce: "another", action: "another" } });
  return sign(ctx, commitmentShape, { game, turn, hash });
}
