import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Admission, sharedOccupancy } from './admission.ts';

const limits = { files: 8, listening: 6, spare: 2, perService: 3 };
const tooMany = { code: 'EMFILE' };

test('open files of all threads count together: connections, pipes and listeners', () => {
  const [a, b] = sharedOccupancy(2).map((occupancy) => new Admission(limits, occupancy));
  assert.ok(a && b);
  a.listen(() => 1);
  assert.ok(b.hasPlenty);
  b.enter(6);
  assert.deepEqual([a.admits(2), a.admits(3), a.hasPlenty], [true, false, false]);
  b.enter(1);
  assert.equal(a.admits(0), false);
  a.unlisten();
  assert.ok(a.admits(0));
});

test('listeners may use the spare files when connections have taken all others', () => {
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

test('listeners cannot take the files that are kept for connections', () => {
  const admission = new Admission(limits);
  for (let i = 0; i < 6; i++) admission.listen(() => i);
  assert.throws(() => admission.listen(() => 6), tooMany);
  assert.ok(admission.admits(0));
});

test('a listener that fails to open is not counted', () => {
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
