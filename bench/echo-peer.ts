/**
 * The other process of the host benchmark: a bare echo, or a host that answers. Says its port on the IPC channel.
 */
import { createServer, type Socket } from "node:net";
import { type EchoStyle, onEcho } from "./bare-echo.ts";
import { MESSAGE_BYTES, pingPongHost } from "./ping-pong.ts";

const [mode, ownPort, benchPort] = process.argv.slice(2);

if (mode !== "host") {
  const server = createServer((socket: Socket) => {
    socket.setNoDelay(true);
    onEcho(socket, mode as EchoStyle, MESSAGE_BYTES, () => true);
    socket.on("error", () => socket.destroy()); // The other side ends a round by leaving.
  });
  server.listen(Number(ownPort), "127.0.0.1", () => process.send?.("ready"));
} else {
  const host = pingPongHost({ self: 1, ports: [Number(benchPort), Number(ownPort)], onPong: () => false });
  await host.open();
  process.send?.("ready");
}
process.once("disconnect", () => process.exit(0));
