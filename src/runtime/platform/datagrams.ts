/** IP multicast. Each group uses two sockets, one for receiving and one for sending. */
import { createSocket, type Socket } from "node:dgram";
import { networkInterfaces } from "node:os";
import type { DatagramGroup, DatagramListener, DatagramSockets, Datagrams } from "./platform.ts";

/** This machine's multicast sockets. */
export const datagrams: Datagrams = {
  interfaces: () =>
    Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
      addresses.filter(({ family }) => family === "IPv4").map(({ address }) => ({ name, address })),
    ),
  open: openSockets,
};

/**
 * The requested buffer size. The system may grant less (Linux: `net.core.rmem_max`). Datagrams that do not fit are lost
 * and must be resent.
 */
const BUFFER_BYTES = 4 * 1024 * 1024;

async function openSockets(place: DatagramGroup, listener: DatagramListener): Promise<DatagramSockets> {
  const ear = createSocket({ type: "udp4", reuseAddr: true, recvBufferSize: BUFFER_BYTES });
  const mouth = createSocket({ type: "udp4", sendBufferSize: BUFFER_BYTES });
  const close = (): void => {
    ear.close();
    mouth.close();
  };
  try {
    // A socket bound to the group's address receives only datagrams for this group. Windows can bind only to local
    // addresses.
    await bound(ear, place.port, process.platform === "win32" ? "0.0.0.0" : place.group);
    ear.addMembership(place.group, place.interface);
    await bound(mouth, 0, "0.0.0.0");
    mouth.setMulticastInterface(place.interface);
    mouth.setMulticastTTL(place.ttl);
    mouth.setMulticastLoopback(true); // Other members may run on this machine.
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

/** Connects the sending socket, which avoids an address lookup for each send. */
function connected(socket: Socket, { port, group }: DatagramGroup): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.connect(port, group, (error?: Error) => (error ? reject(error) : resolve()));
  });
}
