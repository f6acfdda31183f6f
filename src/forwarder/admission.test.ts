import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Admission, sharedOccupancy } from './admission.ts';

const limits = { files: 8, listening: 6, spare: 2, perService: 3 };
const tooMany = { code: 'EMFILE' };

test('everything that is open counts, whoever opened it: connections, pipes and listeners', () => {
  const [a, b] = sharedOccupancy(2).map((occupancy) => new Admission(limits, occupancy));
  assert.ok(a && b);
  a.listen(() => 1);
  assert.ok(b.hasPlenty);
  b.enter(6);
  assert.deepEqual([a.isOpen(2), a.isOpen(3), a.hasPlenty], [true, false, false]);
  b.enter(1);
  assert.equal(a.isOpen(0), false);
  a.unlisten();
  assert.ok(a.isOpen(0));
});

test('listeners come also when connections have taken all, up to what is for the rest of the program', () => {
  const admission = new Admission(limits);
  admission.enter(8);
  for (let i = 0; i < 2; i++) admission.listen(() => i);
  assert.throws(() => admission.listen(() => 2), tooMany);
  assert.equal(admission.hasSpare, false);
  admission.leave(2);
  assert.equal(
    admission.listen(() => 3),
    3,
  );
});

test('listeners leave room for connections', () => {
  const admission = new Admission(limits);
  for (let i = 0; i < 6; i++) admission.listen(() => i);
  assert.throws(() => admission.listen(() => 6), tooMany);
  assert.ok(admission.isOpen(0));
});

test('what could not be opened does not count', () => {
  const admission = new Admission({ ...limits, listening: 1 });
  const fail = () => {
    throw new Error('in use');
  };
  assert.throws(() => admission.listen(fail), /in use/);
  assert.equal(
    admission.listen(() => 1),
    1,
  );
});
