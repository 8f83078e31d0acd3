/** Texts over a simulated stream, as a WebSocket carries them over TCP: each arrives whole, after those before it. */
import type { Stream } from "../runtime/platform/platform.ts";

/** Before each text stands how many bytes it has. */
const LENGTH_BYTES = 4;

export const sendText = (stream: Pick<Stream, "write" | "writable">, text: string): void => {
  if (!stream.writable) return;
  const bytes = Buffer.byteLength(text);
  const message = Buffer.allocUnsafe(LENGTH_BYTES + bytes);
  message.writeUInt32BE(bytes);
  message.write(text, LENGTH_BYTES);
  stream.write(message);
};

/** Puts together what has come in parts, and gives each text. */
export function textReader(heard: (text: string) => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    let at = 0;
    while (rest.length - at >= LENGTH_BYTES) {
      const end = at + LENGTH_BYTES + rest.readUInt32BE(at);
      if (end > rest.length) break;
      const text = rest.toString("utf8", at + LENGTH_BYTES, end);
      at = end;
      heard(text);
    }
    rest = rest.subarray(at);
  };
}
