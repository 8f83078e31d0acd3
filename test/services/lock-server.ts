import type { Member, MemberStatus, Mutex } from "../../src/cluster/services/api.ts";

/** Which member serves locks by `elected-server`: found by these, at each member one of the same name. */
export async function lockServerOf(members: readonly Member[], locks: readonly Mutex[]): Promise<Member> {
  const [{ name }] = locks as [Mutex];
  for (const lock of locks) await lock.use(() => {});
  const serves = ({ instances }: MemberStatus) =>
    instances.some((one) => one.name === name && one.role.endsWith("serving"));
  return members.find((member) => serves(member.status())) as Member;
}
