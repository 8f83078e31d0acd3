/** What members say to each other of names, as it stands on the wire: a name is a kind and a name there, a setting an algorithm with options. */
import type { Names } from "../../protocols/index.ts";
import {
  announcement,
  type Envelope,
  type InstanceEnvelope,
  messageForm,
  RETIREMENT,
  type RetirementMessage,
  type Setting,
} from "./algorithms.ts";
import type { Kind } from "./api.ts";

type Message = Names["message"];
export type Named = Pick<Setting, "kind" | "name">;
/** The envelopes that are of names, apart from those that put one away. */
export type NamesEnvelope = Extract<Envelope, { type: "open" | "refuse" | "full" | "hello" | "ask" }>;

export const keyOf = ({ kind, name }: Named): string => `${kind}/${name}`;

export function namedBy(key: string): Named {
  const end = key.indexOf("/");
  return { kind: key.slice(0, end) as Kind, name: key.slice(end + 1) };
}

/** A setting as members compare it: two whose messages look otherwise must not run one name together. */
export const textOf = (setting: Setting, form = messageForm(setting)): string =>
  JSON.stringify([setting.algorithm, setting.options, form]);

export function settingOf(key: string, text: string): { setting: Setting; form: number } {
  const [algorithm, options, form] = JSON.parse(text) as [string, string, number];
  return { setting: { ...namedBy(key), algorithm, options }, form };
}

export function envelopeOf(message: Message): Envelope {
  switch (message.type) {
    case "hello":
      return { type: "hello" };
    case "inquire":
      return { type: "ask", ...namedBy(message.name) };
    case "open":
      return announcement(settingOf(message.name, message.setting).setting);
    case "refuse":
      return { type: "refuse", ...settingOf(message.name, message.setting).setting, why: message.why };
    case "full":
      return { type: "full", ...namedBy(message.name) };
    default: {
      const { name: key, ...body } = message;
      const { kind, name } = namedBy(key);
      return { type: kind, name, content: { type: RETIREMENT, body } };
    }
  }
}

export function messageIn(envelope: NamesEnvelope): Message {
  switch (envelope.type) {
    case "hello":
      return { type: "hello" };
    case "ask":
      return { type: "inquire", name: keyOf(envelope) };
    case "open":
      return { type: "open", name: keyOf(envelope), setting: textOf(envelope, envelope.form) };
    case "refuse":
      return { type: "refuse", name: keyOf(envelope), setting: textOf(envelope), why: envelope.why };
    case "full":
      return { type: "full", name: keyOf(envelope) };
  }
}

/** Null: it is a message of an algorithm. */
export function retirementIn({ type: kind, name, content }: InstanceEnvelope): Message | null {
  if (content.type !== RETIREMENT || !("body" in content)) return null;
  return { ...(content.body as RetirementMessage), name: keyOf({ kind, name }) };
}
