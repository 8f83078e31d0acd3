/** A connection to a transport. It sends exactly the bytes that the test provides, and records the answers. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import {
  ackCodec,
  closeFrame,
  emptyFrame,
  FRAME,
  frameSplitter,
  type Hello,
  helloCodec,
  OLDEST_WIRE_VERSION,
  openFrame,
  protocolHash,
  type Refuse,
  refuseCodec,
  type Welcome,
  WIRE_VERSION,
  welcomeCodec,
} from "../../src/runtime/transport/frames.ts";
import type { Identity } from "../../src/runtime/transport/identity.ts";
import { codecOf, Reader, Writer } from "../../src/runtime/wire.ts";
import { numbered, numberedShape } from "./transport-under-test.ts";

/** The identity of a member in the default group, without a journal. */
export const identityOf = (change: Partial<Identity> = {}): Identity => ({
  group: "0, 1, 2",
  journal: "",
  isFounded: true,
  remembers: "",
  ...change,
});

export const helloOf = (from: number, to: number, change: Partial<Hello> = {}): Hello => ({
  version: WIRE_VERSION,
  oldest: OLDEST_WIRE_VERSION,
  cluster: "test",
  protocol: protocolHash("numbers", numberedShape),
  from,
  to,
  incarnation: 1,
  identity: identityOf(),
  address: "",
  ...change,
});

const codec = codecOf(numberedShape);

/** Returns a frame of messages whose values are consecutive numbers, starting with `first`. */
export function messagesFrame(first: number, count = 1): Buffer {
  const into = new Writer();
  openFrame(into, FRAME.messages);
  into.natural(first);
  for (let i = 0; i < count; i++) codec.write(numbered(first + i), into);
  return closeFrame(into);
}

type Answer =
  | ({ kind: "welcome" } & Welcome)
  | ({ kind: "refuse" } & Refuse)
  | { kind: "ack"; received: number }
  | { kind: "probe" };

export class Caller {
  readonly answers: Answer[] = [];
  readonly closed: Promise<void>;
  /** Whether it answers probes, as a live process would. */
  provesAlive = true;
  #waiting: (() => void)[] = [];

  private constructor(readonly socket: Socket) {
    const feed = frameSplitter(
      () => 4_096,
      (kind, body) => {
        // The body is valid only during this call.
        this.#take(kind, new Reader(Buffer.from(body.buffer.subarray(body.position, body.end))));
        return true;
      },
    );
    socket.on("data", feed).on("error", () => {});
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
    void this.closed.then(() => this.#wake());
  }

  static async to(port: number): Promise<Caller> {
    const socket = connect(port, "127.0.0.1");
    const caller = new Caller(socket);
    await once(socket, "connect");
    return caller;
  }

  /** Connects and sends a hello. Resolves with the answer, or with null if the connection closes without one. */
  static async greeting(port: number, hello: Hello): Promise<{ caller: Caller; answer: Answer | null }> {
    const caller = await Caller.to(port);
    caller.send(helloCodec.frame(hello));
    return { caller, answer: await caller.answer("welcome", "refuse") };
  }

  send(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  /** Resolves with the first answer of one of these kinds, or with null if the connection closes without one. */
  async answer<K extends Answer["kind"]>(...kinds: K[]): Promise<Extract<Answer, { kind: K }> | null> {
    for (;;) {
      const found = this.answers.find(({ kind }) => (kinds as string[]).includes(kind));
      if (found !== undefined) return found as Extract<Answer, { kind: K }>;
      if (this.socket.closed) return null;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  close(): void {
    this.socket.destroy();
  }

  #take(kind: number, body: Reader): void {
    if (kind === FRAME.welcome) this.answers.push({ kind: "welcome", ...welcomeCodec.read(body) });
    else if (kind === FRAME.refuse) this.answers.push({ kind: "refuse", ...refuseCodec.read(body) });
    else if (kind === FRAME.ack) this.answers.push({ kind: "ack", ...ackCodec.read(body) });
    else if (kind === FRAME.probe) {
      this.answers.push({ kind: "probe" });
      if (this.provesAlive) this.send(emptyFrame(FRAME.alive));
    }
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
