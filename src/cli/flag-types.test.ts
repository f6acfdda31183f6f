import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type FlagType, ip, ipport, mapStringBool, quantity, stringSlice, vmodule } from './flag-types.ts';

/** Gives a flag's texts one after the other and returns what pflag would print at the end. */
function given<T>(type: FlagType<T>, start: T, ...texts: string[]): string {
  const value = texts.reduce((previous, text, i) => type.parse(text, previous, i === 0), start);
  return type.format(value);
}

test('stringSlice: the first replaces the default, later ones append', () => {
  assert.equal(given(stringSlice, ['x']), '[x]');
  assert.equal(given(stringSlice, ['x'], 'a,b'), '[a,b]');
  assert.equal(given(stringSlice, ['x'], 'a,b', 'c'), '[a,b,c]');
  assert.equal(given(stringSlice, ['x'], ''), '[]');
  assert.equal(given(stringSlice, ['x'], 'a', '', 'b'), '[a,b]');
});

test('stringSlice: quotes protect commas, nothing is trimmed', () => {
  assert.deepEqual(stringSlice.parse('"a,b", c', [], true), ['a,b', ' c']);
  assert.equal(given(stringSlice, [], '"a,b", c'), '["a,b"," c"]');
});

test('stringSlice: the printed list reads back', () => {
  const items = fc
    .array(fc.string({ unit: fc.constantFrom('a', '/', '.', ',', '"', ' ') }), { minLength: 1 })
    .filter((list) => list.join('') !== '');
  fc.assert(
    fc.property(items, (list) => {
      const printed = stringSlice.format(list).slice(1, -1);
      assert.deepEqual(stringSlice.parse(printed, [], true), list);
    }),
  );
});

test('mapStringBool: pairs are trimmed, merged and printed in order', () => {
  assert.equal(given(mapStringBool, { Old: true }, 'B=true, A = false ,,'), 'A=false,B=true');
  assert.equal(given(mapStringBool, {}, 'A=true', 'B=1', 'A=f'), 'A=false,B=true');
  assert.equal(given(mapStringBool, { Old: true }, ''), '');
  assert.equal(given(mapStringBool, {}, '__proto__=true'), '__proto__=true');
});

test('mapStringBool: malformed pairs are refused', () => {
  const parse = (text: string) => () => mapStringBool.parse(text, {}, true);
  assert.throws(parse('A'), { message: 'malformed pair, expect string=bool' });
  assert.throws(parse('A=true,B'), { message: 'malformed pair, expect string=bool' });
  assert.throws(parse('A= maybe'), {
    message: 'invalid value of A: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
  });
});

test('ip: kept as written; empty has no effect', () => {
  assert.equal(given(ip, '0.0.0.0', ''), '0.0.0.0');
  assert.equal(given(ip, '0.0.0.0', '::', ''), '::');
  assert.equal(given(ip, '0.0.0.0', '010.001.0.1'), '010.001.0.1');
  for (const text of ['300.0.0.1', 'localhost', '1.2.3.4:80', '::1%lo', ' 1.2.3.4']) {
    assert.throws(() => ip.parse(text, '', true), { message: `"${text}" is not a valid IP address` });
  }
});

test('ipport: an address with or without port; empty has no effect', () => {
  for (const text of ['1.2.3.4', 'fd00::5', '1.2.3.4:0', '1.2.3.4:65535', '[fd00::5]:80', '01.2.3.4:080']) {
    assert.equal(given(ipport, '0.0.0.0:1', text), text);
  }
  assert.equal(given(ipport, '0.0.0.0:1', ''), '0.0.0.0:1');
});

const ipportFaults: [text: string, message: string][] = [
  ['foo', '"foo" is not in a valid format (ip or ip:port): address foo: missing port in address'],
  ['a:b:c', '"a:b:c" is not in a valid format (ip or ip:port): address a:b:c: too many colons in address'],
  ['foo:80', '"foo" is not a valid IP address'],
  ['1.2.3.4:65536', '"65536" is not a valid number'],
  ['1.2.3.4:http', '"http" is not a valid number'],
  ['1.2.3.4:', '"" is not a valid number'],
  ['1.2.3.4:-1', '"-1" is not a valid number'],
];

for (const [text, message] of ipportFaults) {
  test(`ipport refuses ${text}`, () => {
    assert.throws(() => ipport.parse(text, '', true), { message });
  });
}

test('vmodule: repeats append, empty items are skipped', () => {
  assert.equal(given(vmodule, [], 'a=1,,b*=2,', 'c=3'), 'a=1,b*=2,c=3');
  assert.equal(given(vmodule, [], ''), '');
});

test('vmodule: malformed rules are refused', () => {
  for (const item of ['a', 'a=', '=1', 'a=1=2']) {
    assert.throws(() => vmodule.parse(`x=1,${item}`, [], true), {
      message: `"${item}" does not have the pattern=N format`,
    });
  }
  assert.throws(() => vmodule.parse('a=-1', [], true), {
    message: 'parsing verbosity in "a=-1": strconv.ParseUint: parsing "-1": invalid syntax',
  });
});

test('quantity: kept in canonical form', () => {
  assert.equal(given(quantity, '0', '1024Ki'), '1Mi');
});
