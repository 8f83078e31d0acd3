/**
 * Checks types. Code that must not compile is marked with `@ts-expect-error`, so `tsc` fails if it does compile. The
 * test itself only shows that this file was loaded.
 */
import { expect, it } from "vitest";
import { type Assembly, assemble } from "./assemble.ts";
import type { Context, Protocol } from "./protocol.ts";
import { natural, text } from "./shape.ts";

type Echo = {
  state: { heard: number };
  message: { type: "shout"; words: string } | { type: "echo"; count: number };
  timer: "tired";
  command: { type: "shout" };
  event: { type: "heard"; words: string };
};
type Listener = { state: { words: string[] }; command: { type: "note"; words: string } };

const about = { source: "none", assumes: [], properties: [], costs: [], view: () => ({ role: "echo" }) };

const echo: Protocol<Echo> = {
  ...about,
  name: "echo",
  init: () => ({ heard: 0 }),
  receive: {
    shout(state, from, { words }, ctx) {
      state.heard += 1;
      ctx.emit({ type: "heard", words });
      ctx.send(from, { type: "echo", count: state.heard });
      ctx.setTimer("tired", [10, 20]);
    },
    echo: () => undefined,
  },
  timeout: { tired: () => undefined },
  command: { shout: (_state, _command, ctx) => ctx.broadcast({ type: "shout", words: "hey" }) },
  shapes: { message: { shout: { words: text(10) }, echo: { count: natural } }, command: { shout: {} } },
};

// An algorithm leaves out the tables it does not need.
const listener: Protocol<Listener> = {
  ...about,
  name: "listener",
  init: () => ({ words: [] }),
  command: { note: (state, { words }) => void state.words.push(words) },
  shapes: { command: { note: { words: text(10) } } },
};

const { receive, ...deaf } = echo;
// @ts-expect-error the table of messages is missing
export const noTable: Protocol<Echo> = deaf;

// @ts-expect-error the handler of "echo" is missing
export const noHandler: Protocol<Echo> = { ...echo, receive: { shout: receive.shout } };

export const misspeltHandler: Protocol<Echo> = {
  ...echo,
  // @ts-expect-error "shuot" is not a message type, and "shout" is missing
  receive: { shuot: receive.shout, echo: receive.echo },
};

// @ts-expect-error "tierd" is not a timer
export const misspeltTimeout: Protocol<Echo> = { ...echo, timeout: { tierd: () => undefined } };

export const wrongShapes: Protocol<Echo> = {
  ...echo,
  shapes: {
    // @ts-expect-error words is text, not a number
    message: { shout: { words: natural }, echo: { count: natural } },
    command: { shout: {} },
  },
};

export const missingShape: Protocol<Echo> = {
  ...echo,
  shapes: {
    // @ts-expect-error the shape of count is missing
    message: { shout: { words: text(10) }, echo: {} },
    command: { shout: {} },
  },
};

export function wrongEffects(ctx: Context<Echo>): void {
  // @ts-expect-error there is no such message
  ctx.send(1, { type: "whisper" });
  // @ts-expect-error a field is missing
  ctx.broadcast({ type: "shout" });
  // @ts-expect-error there is no such timer
  ctx.setTimer("bored", 10);
  // @ts-expect-error there is no such event
  ctx.emit({ type: "seen" });
  // @ts-expect-error the protocol has no journal
  ctx.persist({ type: "heard" });
}

type Both = { echo: Echo; listener: Listener };
const both: Protocol<Assembly<Both>> = assemble<Both>(
  "both",
  { echo, listener },
  { echo: { heard: ({ words }, give) => give("listener", { type: "note", words }) } },
  { face: "echo" },
);

assemble<Both>(
  "both",
  { echo, listener },
  // @ts-expect-error "haerd" is not an event of echo
  { echo: { haerd: () => undefined } },
  { face: "echo" },
);
assemble<Both>(
  "both",
  { echo, listener },
  // @ts-expect-error the listener takes no such command
  { echo: { heard: (_event, give) => give("listener", { type: "forget" }) } },
  { face: "echo" },
);
// @ts-expect-error no part has that name
assemble<Both>("both", { echo, listener }, {}, { face: "mouth" });

it("the compiler checks the types of the contract", () => {
  expect([echo.name, listener.name, both.name]).toEqual(["echo", "listener", "both"]);
});
