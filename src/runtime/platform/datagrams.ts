/** IP multicast. A group has two sockets: one that hears what is sent to it, one that sends. */
import { createSocket, type Socket } from "node:dgram";
import { networkInterfaces } from "node:os";
import type { DatagramGroup, DatagramListener, DatagramSockets, Datagrams } from "./platform.ts";

export const datagrams: Datagrams = {
  interfaces: () =>
    Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
      addresses.filter(({ family }) => family === "IPv4").map(({ address }) => ({ name, address })),
    ),
  open: openSockets,
};

/** Asked for; the system may give less (Linux: `net.core.rmem_max`). What does not fit is lost and has to be repaired. */
const BUFFER_BYTES = 4 * 1024 * 1024;

async function openSockets(place: DatagramGroup, listener: DatagramListener): Promise<DatagramSockets> {
  const ear = createSocket({ type: "udp4", reuseAddr: true, recvBufferSize: BUFFER_BYTES });
  const mouth = createSocket({ type: "udp4", sendBufferSize: BUFFER_BYTES });
  const close = (): void => {
    ear.close();
    mouth.close();
  };
  try {
    // Bound to the group's address it hears this group only; Windows binds to own addresses alone.
    await bound(ear, place.port, process.platform === "win32" ? "0.0.0.0" : place.group);
    ear.addMembership(place.group, place.interface);
    await bound(mouth, 0, "0.0.0.0");
    mouth.setMulticastInterface(place.interface);
    mouth.setMulticastTTL(place.ttl);
    mouth.setMulticastLoopback(true); // Other members may be on this machine.
    await connected(mouth, place);
  } catch (error) {
    close();
    throw error;
  }
  ear.on("message", (datagram, { address }) => listener.onDatagram(datagram, address));
  for (const socket of [ear, mouth]) socket.on("error", (error) => listener.onBroken(error));
  return {
    send: (datagram) => mouth.send(datagram, (error) => error && listener.onUnsent(error)),
    close,
  };
}

function bound(socket: Socket, port: number, address: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    socket.bind({ port, address }, () => {
      socket.off("error", reject);
      resolve();
    });
  });
}

/** A connected socket looks up nothing each time it sends. */
function connected(socket: Socket, { port, group }: DatagramGroup): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.connect(port, group, (error?: Error) => (error ? reject(error) : resolve()));
  });
}
