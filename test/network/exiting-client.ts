/** A client that acquires a lock and ends its process without closing the connection. */
import { connect } from "../../src/client/node.ts";

const client = await connect({ endpoints: [process.argv[2] as string] });
const lock = await client.mutex("invoice").acquire();
process.on("exit", () => {
  if (lock.isHeld) process.exitCode = 1; // By now, another client may have the lock.
});
process.exit();
