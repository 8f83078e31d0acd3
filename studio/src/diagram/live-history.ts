/** What the live page remembers, as the diagram draws histories. */
import type { Chronicle, Message } from "../history/chronicle.ts";
import type { EventAxis } from "./event-axis.ts";
import { type History, momentOf } from "./picture.ts";

/** @param axis null where the axis is time itself */
export function liveHistory(chronicle: Chronicle, showsChatter: boolean, axis: EventAxis | null): History<Message> {
  const { messages, chatter, marks, lives, networks } = chronicle;
  const states = [...lives.values()].flatMap((life) => life.states());
  const shown = showsChatter ? [...chatter, ...messages].sort((a, b) => momentOf(a) - momentOf(b)) : messages;
  return { messages: shown, marks, lives, networks, states, ...(axis === null ? {} : { axis }) };
}
