/**
 * Copies messages, commands and records, which are values. Each driver passes on copies, made as a network would make
 * them. No node therefore sees later changes that a sender makes to its message or a receiver makes to its copy. Fields
 * are in the order of their shape, and values that a network could not carry are rejected.
 */
import { InvariantViolation, UsageError } from "../core/errors.ts";
import { entriesIn } from "../core/per-node.ts";
import { clone } from "../core/plain.ts";
import type { CommandOf, MessageOf, Protocol, RecordOf, ReplyOf, Tagged, Vocabulary } from "../core/protocol.ts";
import { hasShape, problem, type ShapeNode, type Shapes, variants } from "../core/shape.ts";
import type { Stimulus } from "../core/step.ts";

// Shapes describe the contents.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Copy = (value: any) => any;
type Fields = Readonly<Record<string, ShapeNode>>;

/** Functions that copy a protocol's messages, commands, records and stimuli. */
export interface Copies<V extends Vocabulary> {
  message(message: MessageOf<V>): MessageOf<V>;
  command(command: CommandOf<V>): CommandOf<V>;
  record(record: RecordOf<V>): RecordOf<V>;
  reply(reply: ReplyOf<V>): ReplyOf<V>;
  /** Returns a stimulus with a copy of its contents. */
  stimulus(stimulus: Stimulus<V>): Stimulus<V>;
}

/** The copy functions created so far. All runs of a protocol share them. */
const made = new WeakMap<object, Copies<Vocabulary>>();

/** Returns a protocol's copy functions, derived from its shapes. */
export function copiesOf<V extends Vocabulary>(protocol: Protocol<V>): Copies<V> {
  const known = made.get(protocol) as Copies<V> | undefined;
  if (known !== undefined) return known;
  const copies = makeCopies(protocol);
  made.set(protocol, copies);
  return copies;
}

function makeCopies<V extends Vocabulary>({ shapes }: Protocol<V>): Copies<V> {
  const message = copierOf<MessageOf<V>>(shapes.message, (text) => new InvariantViolation("bad-message", text));
  const command = copierOf<CommandOf<V>>(shapes.command, (text) => new UsageError("bad-command", text));
  const record = copierOf<RecordOf<V>>(shapes.record, (text) => new InvariantViolation("bad-record", text));
  return {
    message,
    command,
    record,
    reply: copierOf<ReplyOf<V>>(shapes.reply, (text) => new InvariantViolation("bad-reply", text)),
    stimulus(stimulus) {
      switch (stimulus.kind) {
        case "receive":
          return { ...stimulus, message: message(stimulus.message) };
        case "command":
          return { ...stimulus, command: command(stimulus.command) };
        case "replay":
          return { ...stimulus, record: record(stimulus.record) };
        default:
          return stimulus;
      }
    },
  };
}

/** Returns a copy function. If no shapes are declared, it accepts any value. */
function copierOf<U extends Tagged>(
  shapes: Shapes<U> | Record<never, never> = {},
  refusal: (text: string) => Error,
): (value: U) => U {
  const shape = variants(shapes as Shapes<U>) as Extract<ShapeNode, { kind: "variants" }>;
  const copies = copiesByType(shape.variants);
  return (value) => {
    try {
      return (copies.get(value.type) ?? (copies.size === 0 ? clone : misshapen))(value);
    } catch (error) {
      const text = problem(shape, value, value.type);
      throw text === null ? error : refusal(text);
    }
  };
}

const copiesByType = (shapes: Fields): ReadonlyMap<string, Copy> =>
  new Map(
    Object.entries(shapes).map(([type, shape]) => [type, structCopy((shape as { fields: Fields }).fields, type)]),
  );

/** Thrown if a value does not have its shape. The caller then finds out which part of the value is wrong. */
const MISSHAPEN = new Error("a value does not match its shape");
const misshapen: Copy = () => {
  throw MISSHAPEN;
};

function copyOf(shape: ShapeNode): Copy {
  switch (shape.kind) {
    case "list": {
      const item = copyOf(shape.items);
      const { maxItems } = shape;
      return (values) => {
        if (!Array.isArray(values) || values.length > maxItems) throw MISSHAPEN;
        return values.map((value) => item(value));
      };
    }
    case "perNode": {
      const inner = copyOf(shape.value);
      return (value) => {
        if (!hasShape(shape, value)) throw MISSHAPEN;
        return Object.fromEntries(entriesIn(value).map(([node, each]) => [node, inner(each)]));
      };
    }
    case "nullable": {
      const inner = copyOf(shape.value);
      return (value) => (value === null ? null : inner(value));
    }
    case "struct":
      return structCopy(shape.fields);
    case "variants": {
      const copies = copiesByType(shape.variants);
      return (value) => (copies.get(value.type) ?? misshapen)(value);
    }
    case "evolving":
      return clone;
    default:
      return (value) => {
        if (!hasShape(shape, value)) throw MISSHAPEN;
        return value;
      };
  }
}

/** Returns a copy function for a struct. `type` comes first, as on a network. */
function structCopy(fields: Fields, type?: string): Copy {
  const names = Object.keys(fields);
  const copies = Object.values(fields).map(copyOf);
  return (value) => {
    const copy: Record<string, unknown> = type === undefined ? {} : { type };
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      copy[name] = (copies[i] as Copy)(value[name]);
    }
    return copy;
  };
}
