import type { Intern } from '../../lib/intern.ts';
import type { ResourceName, Resources } from '../../model/objects.ts';
import { kinds } from '../decode.ts';
import { initialEventsEndAnnotation, type ReceivedObject } from '../encoding.ts';
import { FieldFault, ObjectError } from '../fields.ts';
import { StreamError } from '../stream-error.ts';
import type { Slice } from './chunk-input.ts';
import { decoders } from './decode.ts';
import { type Message, part, text } from './message.ts';
import type { WireReader } from './wire-reader.ts';

interface Identity {
  name: string;
  namespace: string;
  version: string;
}

const identity: Message<Identity> = {
  1: part('metadata', {
    1: text('name'),
    3: text('namespace'),
    6: (reader, target) => {
      target.version = reader.text('resourceVersion');
    },
  }),
};

const annotationKey = Buffer.from(initialEventsEndAnnotation);

const bookmark: Message<{ isEnd: boolean }> = {
  1: part('metadata', {
    12: (reader, found) => {
      if (reader.valueOf('annotations', annotationKey) === 'true') found.isEnd = true;
    },
  }),
};

/** Whether an object of a bookmark closes a streamed list. */
export function endsInitialEvents(reader: WireReader, { bytes, start, end }: Slice): boolean {
  return reader.open(bytes, start, end).read({ isEnd: false }, bookmark).isEnd;
}

/** An object in protobuf. It is read from the bytes that were received. */
export class ProtobufObject implements ReceivedObject {
  readonly #reader: WireReader;
  /** Empty for items of a list, which do not repeat it. */
  readonly #kind: string;
  readonly #slice: Slice;

  constructor(reader: WireReader, kind: string, slice: Slice) {
    this.#reader = reader;
    this.#kind = kind;
    this.#slice = slice;
  }

  get name(): string {
    const { namespace, name } = this.#identity();
    return namespace === '' || name === '' ? name : `${namespace}/${name}`;
  }

  get version(): string {
    return this.#identity().version;
  }

  decode<R extends ResourceName>(resource: R, intern: Intern): Resources[R] {
    const kind = kinds[resource];
    try {
      if (this.#kind !== '' && this.#kind !== kind) throw new FieldFault('kind', this.#kind, `"${kind}"`);
      const { bytes, start, end } = this.#slice;
      return decoders[resource](this.#reader.open(bytes, start, end, intern));
    } catch (error) {
      throw error instanceof FieldFault ? this.#fault(kind, error) : error;
    }
  }

  /** Without its name nobody knows which object is wrong: then the whole answer is unusable. */
  #fault(kind: string, { path, value, wanted, message }: FieldFault): Error {
    const { name } = this;
    if (name === '' && path !== 'metadata.name')
      return new StreamError(`an object without a name: ${message}`);
    return new ObjectError(kind, name, path, value, wanted);
  }

  /** What is readable of it, as far as it goes. */
  #identity(): Identity {
    const { bytes, start, end } = this.#slice;
    const found = { name: '', namespace: '', version: '' };
    try {
      this.#reader.open(bytes, start, end).read(found, identity);
    } catch (error) {
      if (!(error instanceof FieldFault)) throw error;
    }
    return found;
  }
}
