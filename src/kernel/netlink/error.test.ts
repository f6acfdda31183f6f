import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeAck, fakeMessage } from '../../../test/kernel/fake-netlink.ts';
import { NLM_F_ACK_TLVS, NLM_F_CAPPED, NLMSG_DONE, NLMSG_ERROR } from './constants.ts';
import { isNetlinkError, NetlinkError, readAcknowledgement } from './error.ts';
import { type NetlinkMessage, readMessages } from './reader.ts';

const to = { sequence: 1, port: 1 };

function only(bytes: Uint8Array): NetlinkMessage {
  const [message] = readMessages(bytes);
  assert.ok(message);
  return message;
}

test('an acknowledgement has an errno, and the text and offset that the kernel gives', () => {
  assert.deepEqual(readAcknowledgement(only(fakeAck(to))), { errno: 0, text: '' });
  assert.deepEqual(readAcknowledgement(only(fakeAck(to, 17))), { errno: 17, text: '' });
  const extended = fakeAck(to, 22, { text: 'no such hook', offset: 40 });
  assert.deepEqual(readAcknowledgement(only(extended)), { errno: 22, text: 'no such hook', offset: 40 });
});

test('the extended acknowledgement is found after a request that is quoted in full', () => {
  // A refused request of 23 bytes, quoted with its padding, then NLMSGERR_ATTR_MSG "x".
  const body = new Uint8Array(4 + 24 + 8);
  const view = new DataView(body.buffer);
  view.setInt32(0, -2, true);
  view.setUint32(4, 23, true);
  body.set([6, 0, 1, 0, 0x78, 0], 28);
  const message = fakeMessage({ type: NLMSG_ERROR, flags: NLM_F_ACK_TLVS, ...to }, (w) => w.raw(body));
  assert.deepEqual(readAcknowledgement(only(message)), { errno: 2, text: 'x' });
});

test('a quoted length beyond the message yields no extended acknowledgement', () => {
  const body = new Uint8Array(4 + 16);
  new DataView(body.buffer).setUint32(4, 0xfffffff0, true);
  const message = fakeMessage({ type: NLMSG_ERROR, flags: NLM_F_ACK_TLVS, ...to }, (w) => w.raw(body));
  assert.deepEqual(readAcknowledgement(only(message)), { errno: 0, text: '' });
});

test('the end of a dump may come without a status, but an error may not', () => {
  assert.deepEqual(readAcknowledgement(only(fakeMessage({ type: NLMSG_DONE, ...to }))), {
    errno: 0,
    text: '',
  });
  assert.throws(
    () => readAcknowledgement(only(fakeMessage({ type: NLMSG_ERROR, ...to }))),
    /acknowledgement of 0/,
  );
  const short = fakeMessage({ type: NLMSG_ERROR, flags: NLM_F_CAPPED | NLM_F_ACK_TLVS, ...to }, (w) =>
    w.raw(new Uint8Array(8)),
  );
  assert.throws(() => readAcknowledgement(only(short)), /acknowledgement of 8/);
});

test('a netlink error message names action, errno and text', () => {
  assert.equal(
    new NetlinkError('do it', { errno: 2, text: '' }).message,
    'do it: ENOENT (no such file or directory)',
  );
  const missing = new NetlinkError('do it', { errno: 22, text: '', missing: 3 });
  assert.equal(missing.message, 'do it: EINVAL (invalid argument, attribute 3 is missing)');
  assert.ok(isNetlinkError(missing, 'EINVAL') && !isNetlinkError(missing, 'ENOENT'));
});
