/** The transports that the multicast benchmark compares: a channel, bare `node:net` and bare `node:dgram`. */
import { createSocket } from "node:dgram";
import { createServer, connect as dial, type Socket } from "node:net";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import type { Member } from "../../src/cluster/services/api.ts";
import type { ChannelOptions } from "../../src/cluster/services/channel-api.ts";

/** The options for member `self`. There are as many members as addresses. */
export interface MemberOptions {
  readonly self: number;
  /** Addresses for `join()`. */
  readonly members: Readonly<Record<number, string>>;
  readonly dataDir: string;
  readonly multicast: { readonly group: string; readonly port: number; readonly interface: string };
  /** Ports for the bare fan-out over `node:net` and `node:dgram`. */
  readonly barePorts: readonly number[];
}

/** How messages are transported: over a channel, or by a bare fan-out without ordering, repair or a handshake. */
export type Way =
  | { readonly kind: "channel"; readonly name: string; readonly options: ChannelOptions }
  | { readonly kind: "net" | "net-batches" | "dgram" };

export interface Carrier {
  /**
   * Sends one message. On a channel, resolves when `Channel.send()` does. Otherwise, resolves when the message has been
   * passed to the sockets.
   */
  send(payload: string): Promise<unknown>;
  /**
   * Sends payloads as fast as the carrier can, until `next` returns null. Resolves once all of them have been sent. If
   * a carrier does not have this method, the benchmark keeps many messages in flight instead.
   */
  sendAll?(next: () => string | null): Promise<void>;
  close(): Promise<void>;
}

export type Arrived = (from: number, payload: string) => void;

export function carrierOf(way: Way, options: MemberOptions, member: Member, arrived: Arrived): Promise<Carrier> {
  if (way.kind === "channel") return channel(way, options.barePorts.length, member, arrived);
  return way.kind === "dgram" ? bareDgram(options, arrived) : bareNet(options, way.kind === "net", arrived);
}

async function channel(
  { name, options }: Extract<Way, { kind: "channel" }>,
  size: number,
  member: Member,
  arrived: Arrived,
): Promise<Carrier> {
  const it = member.channel<string>(name, options);
  const read = async (): Promise<void> => {
    for await (const { from, payload } of it) arrived(from, payload);
  };
  void read();
  const isComplete = (): boolean => it.status.members.length === size;
  while (!isComplete()) await sleep(WAIT_MS);
  return { send: (payload) => it.send(payload), close: () => it.close() };
}

const WAIT_MS = 20;
const LENGTH_BYTES = 4;
/** Separates two payloads in the same frame. Payloads do not contain it. */
const SEPARATOR = "\n";
/** The maximum number of bytes sent in one turn of the event loop. */
const TURN_BYTES = 60_000;

/**
 * Opens a bare fan-out with one TCP connection per member. With `isByMessage`, every message has its own
 * length-prefixed frame, which is the least that a program with messages must do. Otherwise, one frame contains all
 * messages from a turn, which is the most that batching can do.
 */
async function bareNet({ self, barePorts }: MemberOptions, isByMessage: boolean, arrived: Arrived): Promise<Carrier> {
  const incoming = new Set<Socket>();
  const all = (from: number, frame: string): void => {
    for (const payload of frame.split(SEPARATOR)) arrived(from, payload);
  };
  const server = createServer((socket) => {
    incoming.add(socket);
    readFrames(socket, (frame) => all(frame.charCodeAt(0) - FIRST_SENDER, frame));
  });
  await new Promise<void>((resolve) => server.listen(barePorts[self], "127.0.0.1", resolve));
  const sockets = await Promise.all(barePorts.filter((_, node) => node !== self).map(dialled));
  const write = (payload: string): void => {
    const frame = framed(payload);
    for (const socket of sockets) socket.write(frame);
    all(self, payload);
  };
  return {
    send(payload) {
      write(payload);
      return Promise.resolve();
    },
    async sendAll(next) {
      for (let payloads = taken(next, TURN_BYTES); payloads.length > 0; payloads = taken(next, TURN_BYTES)) {
        for (const socket of sockets) socket.cork();
        if (isByMessage) for (const payload of payloads) write(payload);
        else write(payloads.join(SEPARATOR));
        for (const socket of sockets) socket.uncork();
        await Promise.all(sockets.map(drained));
        await turn();
      }
    },
    async close() {
      for (const socket of [...sockets, ...incoming]) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function taken(next: () => string | null, bytes: number): string[] {
  const payloads: string[] = [];
  for (let length = 0; length < bytes; ) {
    const payload = next();
    if (payload === null) break;
    payloads.push(payload);
    length += payload.length;
  }
  return payloads;
}

function framed(payload: string): Buffer {
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + payload.length);
  frame.writeUInt32BE(payload.length);
  frame.write(payload, LENGTH_BYTES, "latin1");
  return frame;
}

const drained = (socket: Socket): Promise<unknown> =>
  socket.writableNeedDrain ? new Promise((resolve) => socket.once("drain", resolve)) : Promise.resolve();

/**
 * The first character of payloads from member 0. It identifies the sender, since bare fan-outs have no other header.
 */
export const FIRST_SENDER = 65;

async function dialled(port: number): Promise<Socket> {
  for (;;) {
    const socket = dial(port, "127.0.0.1");
    const isOpen = await new Promise((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    if (isOpen) return socket.setNoDelay(true);
    await sleep(WAIT_MS); // The other process is not listening yet.
  }
}

function readFrames(socket: Socket, onFrame: (payload: string) => void): void {
  let rest: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (bytes.length - at >= LENGTH_BYTES) {
      const end = at + LENGTH_BYTES + bytes.readUInt32BE(at);
      if (end > bytes.length) break;
      onFrame(bytes.toString("latin1", at + LENGTH_BYTES, end));
      at = end;
    }
    rest = bytes.subarray(at);
  });
  socket.on("error", () => socket.destroy());
}

const BARE_GROUP = "239.192.7.8";
const BUFFER_BYTES = 4 * 1024 * 1024;
/** The maximum number of a sender's own messages that have not come back to it yet. */
const DATAGRAMS = 128;
/** Messages that do not come back within this time are considered lost. */
const LOST_MS = 50;

/** Opens a bare fan-out with one datagram per message for all receivers, without repairing losses. */
async function bareDgram({ self, barePorts }: MemberOptions, arrived: Arrived): Promise<Carrier> {
  const [port] = barePorts;
  const ear = createSocket({ type: "udp4", reuseAddr: true, recvBufferSize: BUFFER_BYTES });
  const mouth = createSocket({ type: "udp4" });
  await new Promise<void>((resolve) => ear.bind(port, BARE_GROUP, resolve));
  ear.addMembership(BARE_GROUP, "127.0.0.1");
  await new Promise<void>((resolve) => mouth.bind(0, resolve));
  mouth.setMulticastInterface("127.0.0.1");
  await new Promise<void>((resolve) => mouth.connect(port as number, BARE_GROUP, resolve));
  let [flying, heard] = [0, performance.now()];
  ear.on("message", (bytes) => {
    const from = (bytes[0] as number) - FIRST_SENDER;
    if (from === self) [flying, heard] = [flying - 1, performance.now()];
    arrived(from, bytes.toString("latin1"));
  });
  const send = (payload: string): Promise<unknown> => new Promise((resolve) => mouth.send(payload, resolve));
  return {
    send,
    async sendAll(next) {
      flying = 0;
      for (;;) {
        if (performance.now() - heard > LOST_MS) [flying, heard] = [0, performance.now()];
        const sends: Promise<unknown>[] = [];
        for (; flying < DATAGRAMS; flying++) {
          const payload = next();
          if (payload === null) return void (await Promise.all(sends));
          sends.push(send(payload));
        }
        await Promise.all(sends);
        await turn();
      }
    },
    async close() {
      await Promise.all([ear, mouth].map((socket) => new Promise<void>((resolve) => socket.close(resolve))));
    },
  };
}

/**
 * The received messages: their count, and a hash of their order after every `MARK_EVERY` messages and after the last
 * one.
 */
export interface Sequence {
  readonly count: number;
  readonly marks: readonly number[];
  readonly order: number;
}

export const MARK_EVERY = 16;

/** Returns whether all sequences are equal up to the end of the shortest one. */
export function sameOrder(sequences: readonly Sequence[]): boolean {
  const counts = sequences.map(({ count }) => count);
  const last = Math.floor(Math.min(...counts) / MARK_EVERY) - 1;
  const isComplete = new Set(counts).size === 1;
  return new Set(sequences.map(({ marks, order }) => (isComplete ? order : marks[last]))).size === 1;
}
