import * as React from 'react';

import { openLightbox } from '../pictures/lightbox.js';
import { trans } from '../translation.js';
import { diffLines } from './diff.js';
import { sectionLabels } from './labels.js';
import type { ISection } from './sections.js';

/** Longer texts make the page slow. */
const SHOWN_CHARS = 100_000;

interface ISectionProps {
  section: ISection;
  /** Whether to show all of it, however long it is. */
  whole: boolean;
  workspaceDir: string;
}

/** Part of an opened card. Events become only text nodes and data images. */
export function Section(props: ISectionProps) {
  const label = sectionLabels()[props.section.name];
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
  label
}: ISectionProps & { label: string }) {
  const hidden = whole ? 0 : body.length - SHOWN_CHARS;
  const shown = hidden > 0 ? body.slice(0, SHOWN_CHARS) : body;
  switch (kind) {
    case 'image':
      return <Image source={body} label={label} />;
    case 'prose':
      return <p className="oh-Prose">{shown}</p>;
    default:
      return (
        <pre
          className={`oh-Text oh-mod-${kind}`}
          // Focusable, so that the keyboard can scroll it.
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

function Image({ source, label }: { source: string; label: string }) {
  return (
    <button
      className="oh-Image"
      title={trans.__('Enlarge')}
      onClick={() => openLightbox(source, label)}
    >
      <img src={source} alt={label} />
    </button>
  );
}
