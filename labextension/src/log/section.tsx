import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { openLightbox } from '../pictures/lightbox.js';
import { diffLines } from './diff.js';
import { sectionLabel } from './labels.js';
import type { ISection } from './sections.js';

/** More than this makes the page slow and is read elsewhere. */
const SHOWN_CHARS = 100_000;

interface ISectionProps {
  section: ISection;
  /** Whether all of it is shown, however long it is. */
  whole: boolean;
  workspaceDir: string;
  trans: TranslationBundle;
}

/** One part of an opened card. Events only ever become text nodes and data images. */
export function Section(props: ISectionProps) {
  const label = sectionLabel(props.section.name, props.trans);
  return (
    <section className="oh-Section">
      <h4 className="oh-Section-label">{label}</h4>
      <SectionBody {...props} label={label} />
    </section>
  );
}

function SectionBody({
  section: { kind, body },
  whole,
  workspaceDir,
  label,
  trans
}: ISectionProps & { label: string }) {
  const hidden = whole ? 0 : body.length - SHOWN_CHARS;
  const shown = hidden > 0 ? body.slice(0, SHOWN_CHARS) : body;
  switch (kind) {
    case 'image':
      return <Image source={body} label={label} trans={trans} />;
    case 'prose':
      return <p className="oh-Prose">{shown}</p>;
    default:
      return (
        <pre
          className={`oh-Text oh-mod-${kind}`}
          // Focusable, so that the keyboard can scroll what is longer than its box.
          tabIndex={0}
          aria-label={label}
        >
          {kind === 'diff' ? <Diff text={shown} root={workspaceDir} /> : shown}
          {hidden > 0 && (
            <em>{'\n' + trans.__('… and %1 more characters', hidden)}</em>
          )}
        </pre>
      );
  }
}

function Diff({ text, root }: { text: string; root: string }) {
  return (
    <>
      {diffLines(text, root).map(({ kind, text: line }, index) => (
        <span key={index} className={`oh-Diff-line oh-mod-${kind}`}>
          {line + '\n'}
        </span>
      ))}
    </>
  );
}

function Image({
  source,
  label,
  trans
}: {
  source: string;
  label: string;
  trans: TranslationBundle;
}) {
  return (
    <button
      className="oh-Image"
      title={trans.__('Enlarge')}
      onClick={() => openLightbox(source, label, trans)}
    >
      <img src={source} alt={label} />
    </button>
  );
}
