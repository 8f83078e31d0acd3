/** Node 0 gives an order to node 1, which passes it on to node 2, either signed by node 0 or unsigned. */
import {
  type Context,
  isGenuine,
  natural,
  oneOf,
  type Protocol,
  type Shape,
  type Signed,
  sign,
  signed,
  struct,
  text,
} from "../../src/core/index.ts";

type Word = "attack" | "retreat";
export type Relay = {
  state: { obeyed: Word[] };
  message: { type: "order"; order: Signed<Word> };
  command: { type: "order"; word: Word };
  event: { type: "ordered"; word: Word };
};

const word: Shape<Word> = oneOf("attack", "retreat");
const plainOrder: Shape<Signed<Word>> = struct({ by: natural, value: word, signature: text(128) });

export function relayedOrder(how: "signed" | "plain"): Protocol<Relay> {
  const isSigned = how === "signed";
  const order = isSigned ? signed("order", word) : plainOrder;
  const written = (ctx: Context<Relay>, value: Word): Signed<Word> =>
    isSigned ? sign(ctx, order, value) : { by: ctx.self, value, signature: "" };
  return {
    name: `${how}-order`,
    init: () => ({ obeyed: [] }),
    command: {
      order(_state, { word: value }, ctx) {
        ctx.emit({ type: "ordered", word: value });
        ctx.send(1, { type: "order", order: written(ctx, value) });
      },
    },
    receive: {
      order(state, _from, { order: given }, ctx) {
        if (given.by !== 0 || (isSigned && !isGenuine(ctx, order, given))) return; // Not from node 0.
        if (ctx.self === 1) ctx.send(2, { type: "order", order: given });
        else if (!state.obeyed.includes(given.value)) state.obeyed.push(given.value);
      },
    },
    shapes: { message: { order: { order } }, command: { order: { word } } },
    source: "none",
    assumes: [],
    properties: [
      {
        name: "obedience",
        claim: "2 obeys no order that 0 has not given",
        when: "always",
        history: { empty: [], after: (before: readonly Word[], event) => [...before, event.word] },
        holds: ({ alive, state, history }) =>
          alive.every((node) => state(node).obeyed.every((each) => history<Word[]>(0).includes(each))),
      },
    ],
    costs: [],
    view: () => ({ role: "relay" }),
  };
}
