/**
 * What the host is measured beside, without any of its work: a bare `node:net` echo. In bulk it moves bytes and never looks
 * at them, which no program that has messages can do; by message it cuts the stream into messages of a fixed size,
 * which is the least that one can do, and writes each back by itself, corked so that they leave together.
 */
import type { Socket } from "node:net";

export type EchoStyle = "bulk" | "message";

/** Calls back for what has arrived: how many whole messages, and the bytes to send back for them. */
export function onEcho(socket: Socket, style: EchoStyle, messageBytes: number, answer: (messages: number) => boolean) {
  let partial: Buffer = Buffer.alloc(0);
  let partialBytes = 0;
  socket.on("data", (chunk: Buffer) => {
    if (style === "bulk") {
      partialBytes += chunk.length;
      const whole = Math.floor(partialBytes / messageBytes);
      partialBytes -= whole * messageBytes;
      if (whole > 0 && answer(whole)) socket.write(Buffer.alloc(whole * messageBytes));
      return;
    }
    const bytes = partial.length === 0 ? chunk : Buffer.concat([partial, chunk]);
    let at = 0;
    socket.cork();
    for (; bytes.length - at >= messageBytes; at += messageBytes) {
      if (answer(1)) socket.write(bytes.subarray(at, at + messageBytes));
    }
    socket.uncork();
    partial = bytes.subarray(at);
  });
}
