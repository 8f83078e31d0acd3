/**
 * The least that can run under a name: a node that enters says to the others how it runs the name, and is inside at once. What they
 * say waits here until they have announced the name.
 */
import type { NodeId, Protocol } from "../../../core/protocol.ts";
import { natural, oneOf, text } from "../../../core/shape.ts";
import { type OptionsOf, option, optionTable } from "../../options.ts";
import type { Admission, Forgotten } from "./vocabulary.ts";

export type Words = {
  state: {
    /** How the name is run; null: it is not. */
    setting: string | null;
    /** What waits until its sender has said how it runs the name. */
    held: Word[];
  };
  message: { type: "word"; word: string };
  command:
    | { type: "begin"; setting: string }
    | { type: "end" }
    | { type: "giveUp" }
    | { type: "enter" }
    | { type: "joined"; node: NodeId }
    | { type: "parted"; node: NodeId }
    | { type: "admitted"; from: NodeId; word: string; how: Admission };
  event: { type: "entered"; token: number } | { type: "arrived"; from: NodeId; word: string };
};

const wordsOptions = optionTable("words", {
  forgotten: option<Forgotten>(oneOf("alone", "together", "never"), "together", "how the name is closed"),
});

export type WordsOptions = OptionsOf<typeof wordsOptions>;

export const settledWords = (given: Partial<WordsOptions> | undefined): WordsOptions => wordsOptions.settle(given);

interface Word {
  from: NodeId;
  word: string;
}

type State = Words["state"];

const end = (state: State): void => {
  state.setting = null;
};

export function words(given?: Partial<WordsOptions>): Protocol<Words> {
  settledWords(given); // Whoever puts names together reads it.
  return {
    name: "words",
    init: () => ({ setting: null, held: [] }),
    receive: { word: (_state, from, { word }, ctx) => ctx.emit({ type: "arrived", from, word }) },
    command: {
      begin(state, { setting }) {
        state.setting = setting;
      },
      end,
      giveUp: end,
      enter({ setting }, _command, ctx) {
        if (setting === null) return;
        ctx.broadcast({ type: "word", word: setting });
        ctx.emit({ type: "entered", token: 0 });
      },
      joined(state, { node }, ctx) {
        const held = state.held.filter(({ from }) => from === node);
        state.held = state.held.filter(({ from }) => from !== node);
        for (const word of held) ctx.emit({ type: "arrived", ...word });
      },
      parted(state, { node }) {
        state.held = state.held.filter(({ from }) => from !== node);
      },
      admitted(state, { how, from, word }) {
        if (how === "hold") state.held.push({ from, word });
      },
    },
    shapes: {
      message: { word: { word: text(100) } },
      command: {
        begin: { setting: text(100) },
        end: {},
        giveUp: {},
        enter: {},
        joined: { node: natural },
        parted: { node: natural },
        admitted: { from: natural, word: text(100), how: oneOf<Admission>("take", "hold", "drop") },
      },
    },
    source: "what runs under a name",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ setting }) => ({ role: setting ?? "not run" }),
  };
}
