//! The most common phrases in other languages.

use super::super::{FindingRule, FindingWeight};
use FindingRule::{Override, Secrecy, ToolOrder};
use FindingWeight::Certain;

/// Phrases of languages with spaces between words, in the same notation as the English ones.
pub(super) const PHRASES: &[(FindingRule, FindingWeight, &[&str])] = &[
    (
        Override,
        Certain,
        &[
            "ignoriere|missachte|vergiss ~2 systemprompt|anweisungen|vorgaben|regeln",
            "ignoriere|ignorieren|missachte|vergiss ~3 vorherigen|vorherige|bisherigen|bisherige|obigen|früheren|\
                vorigen ~1 anweisungen|anweisung|instruktionen|regeln",
            "ignore|ignorez|ignorer|oublie|oubliez ~4 instructions|consignes ~2 précédentes|antérieures",
            "ignora|ignore|ignorar|olvida|olvide ~4 instrucciones ~2 anteriores|previas",
            "ignore|ignora|esqueça|desconsidere ~4 instruções ~2 anteriores|prévias",
            "ignora|ignorare|dimentica ~4 istruzioni ~2 precedenti",
            "negeer ~3 vorige|eerdere|voorgaande instructies",
            "zignoruj|ignoruj ~3 poprzednie instrukcje|polecenia",
            "önceki ~2 talimatları yoksay|unut|görmezden",
            "игнорируй|игнорируйте|забудь|проигнорируй ~3 предыдущие|прежние|прошлые инструкции|указания|команды",
        ],
    ),
    (
        Secrecy,
        Certain,
        &[
            "kein wort ~3 benutzer|nutzer|anwender|user",
            "sag|sage|sagen|erzähle|verrate|verraten|erwähne|mitteilen|informiere|informieren|teile ~5 benutzer|\
                nutzer|anwender|user ~4 nicht|nichts",
            "sag|sage|sagen|erzähl|erzähle|verrate niemandem|keinem",
            "benutzer|nutzer|anwender|user soll|darf|braucht ~2 nichts|nicht ~1 merken|wissen|erfahren|mitbekommen",
            "sag|sage|sagen|erzähle|verrate|erwähne ~2 nicht|nichts ~3 benutzer|nutzer|anwender|user",
            "benutzer|nutzer|anwender ~4 nicht|nichts|niemals ~3 erfahren|sagen|mitteilen|informieren|wissen|\
                erwähnen|verraten",
            "ne ~1 dis|dites|mentionne|mentionnez|informe|informez|révèle|révélez|parle|parlez|préviens|prévenez \
                ~1 pas|jamais|rien ~5 lutilisateur|utilisateur",
            "ninforme|ninformez|ninformer|navertis|navertissez|nen ~1 parle|parlez|dis|dites ~1 pas|jamais|rien ~5 \
                lutilisateur|utilisateur",
            "ninforme|ninformez|ninformer|navertis|navertissez ~1 pas|jamais|rien ~5 lutilisateur|utilisateur",
            "ne pas informer|dire|mentionner|révéler ~4 lutilisateur|utilisateur",
            "no|nunca|jamás ~2 digas|diga|menciones|mencione|informes|informe|reveles|revele|cuentes ~5 usuario",
            "não|nunca ~1 diga|conte|mencione|informe|revele|avise ~5 usuário|utilizador",
            "non|mai ~2 dire|dirlo|menzionare|informare|rivelare|dica ~4 allutente|utente|lutente",
            "vertel|zeg|meld ~4 gebruiker ~2 niet|niets|niks",
            "nie mów|informuj|wspominaj ~3 użytkownikowi|użytkownika",
            "не|никогда ~2 говори|говорите|сообщай|сообщайте|упоминай|упоминайте|рассказывай|раскрывай ~4 \
                пользователю|пользователя|пользователь",
        ],
    ),
    (
        ToolOrder,
        Certain,
        &[
            "vor|bevor ~3 jedem|jeder|allen|irgendein|andere|anderes ~2 werkzeug|tool|werkzeuge|tools|funktion",
            "avant ~2 tout|toute|tous|chaque ~1 autre ~1 outil|outils|fonction",
            "antes de ~2 cualquier|qualquer|cada ~1 otra|outra ~1 herramienta|ferramenta",
            "prima di ~2 qualsiasi|ogni altro strumento",
            "перед|прежде ~3 любым|любого|другими|другого ~2 инструментом|инструмента|инструментами",
        ],
    ),
];

/// Phrases in scripts without spaces: all parts, closely following each other.
pub(in super::super) const UNSPACED_PHRASES: &[(FindingRule, FindingWeight, &[&str])] = &[
    (Override, Certain, &["忽略", "指令"]),
    (Override, Certain, &["忽略", "指示"]),
    (Override, Certain, &["无视", "指令"]),
    (Override, Certain, &["無視", "指令"]),
    (Override, Certain, &["指示", "無視"]),
    (Override, Certain, &["지시", "무시"]),
    (Override, Certain, &["명령", "무시"]),
    (Secrecy, Certain, &["不要告诉", "用户"]),
    (Secrecy, Certain, &["不要告訴", "使用者"]),
    (Secrecy, Certain, &["不要向用户"]),
    (Secrecy, Certain, &["不要让用户"]),
    (Secrecy, Certain, &["ユーザー", "言わない"]),
    (Secrecy, Certain, &["ユーザー", "伝えない"]),
    (Secrecy, Certain, &["ユーザー", "知らせない"]),
    (Secrecy, Certain, &["사용자", "말하지"]),
    (Secrecy, Certain, &["사용자", "알리지"]),
    (ToolOrder, Certain, &["使用任何其他工具之前"]),
    (ToolOrder, Certain, &["他のツール", "前に必ず"]),
];
