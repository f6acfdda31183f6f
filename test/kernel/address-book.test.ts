import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { AddressBook } from '../../src/kernel/route/address-book.ts';
import { openRouteClient } from '../../src/kernel/route/client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadLibc } from '../../src/native/koffi-libc.ts';
import { inNamespace, sh } from '../cluster/lab/namespace.ts';
import { eventuallyEqual } from '../eventually.ts';

inNamespace(import.meta.url, () => {
  let book: AddressBook;
  before(async () => {
    book = AddressBook.open(await loadLibc(), { clock: systemClock });
    sh('ip link add kpt-a type veth peer name kpt-b');
  });
  after(() => book.close());

  const ips = async () => (await book.list()).map(({ ip }) => ip).toSorted();
  /** Waits for notifications to bring the book to this. */
  const becomes = (expected: string[]) => eventuallyEqual(`${expected.length} addresses`, ips, expected);

  test('the address book follows changes of addresses and interfaces', async () => {
    const before = await ips();
    assert.ok(before.includes('127.0.0.1'));
    sh('ip address add 192.0.2.1/32 dev kpt-a; ip address add 2001:db8::1/128 dev kpt-a nodad');
    await becomes([...before, '192.0.2.1', '2001:db8::1'].toSorted());
    sh('ip address del 192.0.2.1/32 dev kpt-a');
    await becomes([...before, '2001:db8::1'].toSorted());
    sh('ip address add 192.0.2.2/32 dev kpt-b; ip link del kpt-a');
    await becomes(before);
  });

  test('the address book agrees with the kernel after more changes than its queue holds', async () => {
    sh('ip link add kpt-c type veth peer name kpt-d');
    const lines = Array.from(
      { length: 5000 },
      (_, i) => `address add 10.9.${i >> 8}.${i & 255}/32 dev kpt-c`,
    );
    sh('ip -batch -', lines.join('\n'));
    const route = openRouteClient(await loadLibc(), { clock: systemClock });
    const listed = (await route.listAddresses()).map(({ ip }) => ip).toSorted();
    route.close();
    assert.ok(listed.length > 5000);
    await becomes(listed);
  });
});
