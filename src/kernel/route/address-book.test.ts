import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { FakeNetlink, fakeDone, fakeMessage, overrunError } from '../../../test/kernel/fake-netlink.ts';
import { AddressBook } from './address-book.ts';

const RTM_NEWADDR = 20;
const RTM_DELADDR = 21;

test('an address book lists once, then applies notifications', async () => {
  const { book, events, lists } = open([[1, '10.0.0.1']]);
  assert.deepEqual(await texts(book), ['1 10.0.0.1']);
  events.emit(notification(RTM_NEWADDR, 2, '10.0.0.2'), notification(RTM_NEWADDR, 1, '10.0.0.1'));
  assert.deepEqual(await texts(book), ['1 10.0.0.1', '2 10.0.0.2']);
  events.emit(notification(RTM_DELADDR, 1, '10.0.0.1'));
  assert.deepEqual(await texts(book), ['2 10.0.0.2']);
  assert.equal(lists(), 1);
});

test('notifications during a list are applied after it', async () => {
  const { book, events } = open([
    [1, '10.0.0.1'],
    [1, '10.0.0.2'],
  ]);
  const listing = texts(book);
  events.emit(notification(RTM_NEWADDR, 1, '10.0.0.3'), notification(RTM_DELADDR, 1, '10.0.0.1'));
  assert.deepEqual(await listing, ['1 10.0.0.2', '1 10.0.0.3']);
});

test('concurrent callers share one list of addresses', async () => {
  const { book, lists } = open([[1, '10.0.0.1']]);
  const listings = await Promise.all([texts(book), texts(book)]);
  assert.deepEqual(listings, [['1 10.0.0.1'], ['1 10.0.0.1']]);
  assert.equal(lists(), 1);
});

test('an address book lists again after lost notifications', async () => {
  const addresses: [number, string][] = [[1, '10.0.0.1']];
  const { book, events, lists } = open(addresses);
  await texts(book);
  addresses.push([1, '10.0.0.9']);
  events.emit(overrunError());
  assert.deepEqual(await texts(book), ['1 10.0.0.1', '1 10.0.0.9']);
  await texts(book);
  assert.equal(lists(), 2);
});

test('an address book lists on every call after its subscription failed', async () => {
  const { book, events, lists } = open([[1, '10.0.0.1']]);
  events.emit(Uint8Array.of(1, 2, 3));
  await texts(book);
  await texts(book);
  assert.equal(lists(), 2);
});

test('closing an address book closes both sockets', () => {
  const { book, kernels } = open([]);
  book.close();
  assert.deepEqual(
    kernels.map(({ closed }) => closed),
    [true, true],
  );
});

function open(addresses: readonly [index: number, ip: string][]) {
  let lists = 0;
  const kernels: FakeNetlink[] = [];
  const openOne = () => {
    const kernel = new FakeNetlink(([request], { portId }) => {
      lists++;
      const to = { sequence: request?.sequence ?? 0, port: portId };
      return [...addresses.map(([index, ip]) => notification(RTM_NEWADDR, index, ip, to)), fakeDone(to)];
    });
    kernels.push(kernel);
    return kernel;
  };
  const book = new AddressBook(openOne, { clock: new FakeClock() });
  const [events] = kernels;
  assert.ok(events);
  return { book, events, kernels, lists: () => lists };
}

async function texts(book: AddressBook): Promise<string[]> {
  return (await book.list()).map(({ interfaceIndex, ip }) => `${interfaceIndex} ${ip}`);
}

function notification(type: number, index: number, ip: string, to = { sequence: 0, port: 0 }): Uint8Array {
  return fakeMessage({ type, ...to }, (writer) => {
    writer.raw(Uint8Array.of(2, 32, 0, 0, index, 0, 0, 0));
    writer.data(2, Uint8Array.from(ip.split('.').map(Number)));
  });
}
