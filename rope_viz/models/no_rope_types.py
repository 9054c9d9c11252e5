"""Model types without rotary embedding, and the switches by which a type that has one goes without it.

Read in the modeling files of transformers 5.23.0: no class of a type named here rotates queries and keys of a text.
The types that left transformers before (transfo-xl and its like) and those whose code travels with the model were read
there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rope_viz.embedding.spec import shorten


class NoRope(ValueError):  # noqa: N818 - nothing is wrong
    """The config describes a model without rotary embedding: nothing is wrong with it, and there is nothing to say."""


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


WHY = {
    "learned": "it adds learned position vectors to the token embeddings",
    "sinusoidal": "it adds sines and cosines of the position to the token embeddings",
    "relative": "its attention adds a learned term for the distance",
    "alibi": "its attention subtracts a slope times the distance (ALiBi)",
    "recurrent": "it has no attention, and a recurrence keeps the order",
    "hybrid": "its attention layers have no positions, and its recurrent layers keep the order",
    "encoder": "it encodes images, sound or series, and rotates nothing over the positions of a text",
    "none": "nothing marks the positions",
}

TYPES: dict[str, frozenset[str]] = {
    "learned": names(
        """
        aimv2 aimv2_text_model albert align align_text_model altclip altclip_text_model bark bart bert
        bert-generation big_bird bigbird_pegasus biogpt blenderbot blenderbot-small blip blip_text_model
        bridgetower bridgetower_text_model bros camembert canine chinese_clip chinese_clip_text_model clap
        clap_text_model clip clip_text_model clipseg clipseg_text_model clvp_decoder cohere_asr convbert
        data2vec-text decision_transformer distilbert dpr electra ernie ernie_m flaubert flava
        flava_text_model florence2_language fnet git gpt-sw3 gpt2 gpt_bigcode gpt_neo gptsan-japanese groupvit
        groupvit_text_model ibert imagegpt layoutlm layoutlmv3 layoutxlm led lilt longformer luke lxmert
        markuplm mbart megatron-bert metaclip_2 metaclip_2_text_model mobilebert mra mvp nystromformer
        openai-gpt opt owlv2 owlv2_text_model owlvit owlvit_text_model plbart pp_formulanet
        pp_formulanet_text prophetnet qdqbert reformer rembert retribert roberta roberta-prelayernorm
        roc_bert siglip siglip2 siglip2_text_model siglip_text_model splinter squeezebert tapas trocr vilt
        visual_bert whisper xclip xclip_text_model xlm xlm-prophetnet xlm-roberta xlm-roberta-xl xmod yoso
        """
    ),
    "sinusoidal": names(
        """
        autoformer canary canary_decoder ctrl fsmt informer kosmos-2 kosmos-2.5 kosmos_2_5_text_model
        kosmos_2_text_model m2m_100 marian musicgen musicgen_decoder musicgen_melody
        musicgen_melody_decoder nllb-moe pegasus pegasus_x speech_to_text speecht5 time_series_transformer
        timesfm tipsv2 tipsv2_text_model videoprism videoprism_text_model xglm
        """
    ),
    "relative": names(
        """
        cpmant deberta deberta-v2 funnel inkling2 inkling2_text inkling_mm_model inkling_text layoutlmv2
        longt5 mpnet mt5 nezha pix2struct pix2struct_text_model pop2piano switch_transformers t5
        transfo-xl udop umt5 xlnet
        """
    ),
    "alibi": names(
        """
        bloom gpt_refact mpt
        """
    ),
    "recurrent": names(
        """
        falcon_mamba mamba mamba2 mamba_ssm rwkv RWKV rwkv5 rwkv6 rwkv7 xlstm
        """
    ),
    "hybrid": names(
        """
        glm5_next glm5_next_text jamba kimi_linear nemotron_h phi4flash zamba
        """
    ),
    "encoder": names(
        """
        aimv2_vision_model align_vision_model altclip_vision_model audio-spectrogram-transformer
        audioflamingo3_encoder beit bit blip_2_qformer blip_2_vision_model blip_vision_model
        bridgetower_vision_model chameleon_vqgan chinese_clip_vision_model chmv2 clap_audio_model
        clip_vision_model clipseg_vision_model conditional_detr convnext convnextv2 cosmos3_edge_vision
        cvt d_fine dab-detr dac data2vec-audio data2vec-vision deepseek_ocr2_sam_vision_model
        deepseek_ocr2_vision deformable_detr deimv2 deit depth_anything depth_pro detr dinat dinov2
        dinov2_with_registers dinov3_convnext dinov3_vit donut-swin dpt edgetam edgetam_mask_decoder
        edgetam_prompt_encoder edgetam_video_mask_decoder edgetam_video_prompt_encoder
        edgetam_vision_model efficientnet emu3_vqgan encodec eomt esmfold2 fastspeech2_conformer
        fastspeech2_conformer_hifigan fastspeech2_conformer_with_hifigan flava_image_codebook
        flava_image_model flava_multimodal_model florence_vision focalnet fun_asr_nano_encoder
        gemma3n_audio gemma3n_vision gemma4_audio gemma4_unified_audio gemma4_unified_vision
        git_vision_model glm_image_vision glm_image_vqmodel glpn got_ocr2_vision granite_docling_vision
        granite_speech5_ctc granite_speech5_encoder granite_speech_encoder granite_speech_plus_encoder
        groupvit_vision_model hgnet_v2 hiera higgs_audio_v2_tokenizer hubert hunyuan_vl_vision
        idefics2_perceiver idefics2_vision idefics3_vision idefics_perciever idefics_vision ijepa
        inkling_audio inkling_vision instructblip_qformer instructblip_vision_model
        instructblipvideo_qformer instructblipvideo_vision_model internvl_vision janus_vision_model
        janus_vqgan kosmos_2_5_vision_model kosmos_2_vision_model levit lightglue lw_detr lw_detr_vit
        mask2former maskformer maskformer-swin metaclip_2_vision_model mgp-str minicpm_ocr_vision
        minicpmv4_6_vision minicpmv4_7_vision mllama_vision_model mobilenet_v1 mobilenet_v2 mobilevit
        mobilevitv2 molmo2_adapter molmo2_vision moonshine_streaming_encoder moss_transcribe_diarize_audio
        muse_spark_audio nemotron3_5_asr nemotron3_5_transcribe_audio nemotron3_diarization
        nemotron_asr_streaming nemotron_asr_streaming_encoder nougat oneformer ovis2_vision
        owlv2_vision_model owlvit_vision_model parakeet_ctc parakeet_encoder parakeet_rnnt parakeet_tdt
        patchtsmixer patchtst perceiver phi4_multimodal_audio phi4_multimodal_vision
        pix2struct_vision_model pixio poolformer pp_chart2table_vision pp_doclayout_v2 pp_doclayout_v3
        pp_doclayout_v4 pp_formulanet_vision pp_lcnet pp_lcnet_v3 pp_lcnet_v4 pp_ocrv5_mobile_det
        pp_ocrv5_mobile_rec pp_ocrv5_server_det pp_ocrv5_server_rec pp_ocrv6_medium_det pp_ocrv6_small_det
        pp_ocrv6_small_rec pp_ocrv6_tiny_rec prompt_depth_anything pvt pvt_v2 qianfan_ocr_vision
        qwen2_5_omni_audio_encoder qwen2_5_omni_bigvgan qwen2_5_omni_token2wav qwen2_audio_encoder
        qwen3_asr_encoder qwen3_omni_moe_audio_encoder radio regnet resnet rf_detr rf_detr_dinov2 rt_detr
        rt_detr_resnet rt_detr_v2 sam sam2 sam2_hiera_det_model sam2_mask_decoder sam2_prompt_encoder
        sam2_video_mask_decoder sam2_video_prompt_encoder sam2_vision_model sam3 sam3_detr_decoder
        sam3_detr_encoder sam3_geometry_encoder sam3_lite_text sam3_lite_text_detr_decoder
        sam3_lite_text_detr_encoder sam3_lite_text_geometry_encoder sam3_lite_text_mask_decoder
        sam3_lite_text_text_model sam3_mask_decoder sam3_tracker sam3_tracker_mask_decoder
        sam3_tracker_prompt_encoder sam3_tracker_video_mask_decoder sam3_tracker_video_prompt_encoder
        sam3_video sam3_vision_model sam_hq sam_hq_mask_decoder sam_hq_prompt_encoder sam_hq_vision_model
        sam_mask_decoder sam_prompt_encoder sam_vision_model sapiens2 sapiens2_head seamless_m4t
        seamless_m4t_v2 segformer seggpt sew sew-d siglip2_vision_model siglip_vision_model slanet slanext
        slanext_vision smolvlm_vision speecht5_hifigan superglue superpoint swiftformer swin swin2sr
        swinv2 table-transformer textnet timesformer timm_backbone timm_wrapper tipsv2_dpt
        tipsv2_vision_model tvp unispeech unispeech-sat univnet unlimited_ocr_sam_vision_model
        unlimited_ocr_vision unlimited_ocr_vision_encoder upernet uvdoc uvdoc_backbone
        vibevoice_acoustic_tokenizer vibevoice_acoustic_tokenizer_decoder
        vibevoice_acoustic_tokenizer_encoder vibevoice_diffusion videomae videomt videoprism_vision_model
        vit vit_mae vit_msn vitdet vitmatte vitpose vitpose_backbone vits vivit vjepa2 voxtral_encoder
        wav2vec2 wav2vec2-bert wav2vec2-conformer wavlm xclip_vision_model xcodec yolos zoedepth
        """
    ),
}
"""{reason: model types}."""
REASONS = {kind: reason for reason, kinds in TYPES.items() for kind in kinds}
LETTERS = {re.sub("[^a-z0-9]", "", kind.lower()): kind for kind in sorted(REASONS)}

# Composite types whose language model has no rotary embedding unless the config puts another one in.
WRAPPERS: dict[str, dict[str, Any]] = {
    **{kind: {"text": ["text_config"], "type": "opt"} for kind in ("blip-2", "instructblip", "instructblipvideo")},
    **{kind: {"text": ["text_config"], "type": "bert"} for kind in ("grounding-dino", "mm-grounding-dino")},
    **{kind: {"text": ["decoder"], "type": "bert"} for kind in ("encoder-decoder", "speech-encoder-decoder")},
    **{kind: {"text": ["text_config"], "type": "nemotron_h"} for kind in ("nemo_speechlm", "nemotron_h_omni")},
    "vision-encoder-decoder": {"text": ["decoder"], "type": "bert"},
    "vision-text-dual-encoder": {"text": ["text_config"], "type": "bert"},
    "omdet-turbo": {"text": ["text_config"], "type": "clip_text_model"},
    "florence2": {"text": ["text_config"], "type": "bart"},
    "rag": {"text": ["generator"], "type": "bart"},
    # These three do rotate, but hold no parameters of their own for it.
    "gemma4_assistant": {"text": ["text_config"], "type": "gemma4_text"},
    "lasr_ctc": {"text": ["encoder_config"], "type": "lasr_encoder"},
    "pi0": {"text": ["vlm_config"], "type": "paligemma"},
}

# What position_embedding_type may say besides rope and rotary, in any config.
NOT_ROTARY = {
    "absolute": "learned",
    "learned": "learned",
    "learned_absolute": "learned",
    "sinusoidal": "sinusoidal",
    "relative": "relative",
    "relative_key": "relative",
    "relative_key_query": "relative",
    "alibi": "alibi",
    "nope": "none",
    "none": "none",
}


def reason(kind: str, config: Mapping[str, Any], *, listed: bool) -> str:
    """Why this model has no rotary embedding, empty where it has one.

    `listed` says whether the type is one whose code was read: of others the unmistakable keys are believed.
    """
    key, value = "position_embedding_type", config.get("position_embedding_type")
    kind = kind or by_class(config)
    if kind in REASONS:
        if names_another(config) or rotates_after_all(config) or (kind == "mpt" and rotates_by_mosaic(config)):
            return ""
        if isinstance(value, str) and NOT_ROTARY.get(value.lower()) == "alibi":
            return f"{key} is {shorten(value)}, so {WHY['alibi']}"
        return WHY[REASONS[kind]]
    if not listed and "ssm_cfg" in config and not config.get("attn_layer_idx"):
        return WHY["recurrent"]
    if kind in ("esm", "granitemoehybrid") or not listed:
        wanted = {"esm": "rotary", "granitemoehybrid": "rope"}.get(kind)
        known = NOT_ROTARY.get(value.lower()) if isinstance(value, str) else None
        if known or (wanted and key in config and value != wanted):
            return f"{key} is {shorten(value)}, so {WHY[known or 'none']}"
    if (kind == "falcon" or not listed) and (config.get("alibi") is True or config.get("use_alibi") is True):
        return f"alibi is true, so {WHY['alibi']}"
    if kind == "baichuan" and config.get("hidden_size") == 5120:
        return f"its 13B models do not rotate, {WHY['alibi']}"
    if kind == "zamba2" and config.get("use_mem_rope") is False:
        return f"use_mem_rope is false, so {WHY['hybrid']}"
    if kind == "olmo_hybrid" and without_base(config):
        return f"rope_theta is null, so {WHY['hybrid']}"
    attention = config.get("attn_config")
    if not listed and isinstance(attention, Mapping) and attention.get("alibi") is True:
        return f"attn_config.alibi is true, so {WHY['alibi']}"
    for key in ("rotary_pct", "rope_pct", "rotary_emb_fraction", "qk_rope_head_dim"):
        if kind == "deepseek":
            break  # its attention rotates whole heads, whatever those keys say
        if isinstance(config.get(key), (int, float)) and not isinstance(config.get(key), bool) and config[key] == 0:
            return f"{key} is 0, so no part of a head rotates"
    return ""


def by_class(config: Mapping[str, Any]) -> str:
    """The type of a config without one that names a class whose type has no rotary embedding; empty for any other."""
    named = config.get("architectures")
    name = str(named[0]) if isinstance(named, list) and named else ""
    letters = re.match(r"(\w+?)(LMHead|For[A-Z]|DoubleHeads|Model\b|PreTrained)", name)
    return "" if letters is None else LETTERS.get(letters[1].lower(), "")


def rotates_after_all(config: Mapping[str, Any]) -> bool:
    """Whether a type that usually does not rotate is told to: code that travels with the model, and sound encoders."""
    told = (config.get("position_embedding_type"), config.get("position_embeddings_type"))
    return any(isinstance(value, str) and value.lower() in ("rotary", "rope") for value in told)


def names_another(config: Mapping[str, Any]) -> bool:
    """Whether the class that a config names is known to be another's: Grok 2 is published as a "git"."""
    named = config.get("architectures")
    return isinstance(named, list) and "Grok1ForCausalLM" in named


def without_base(config: Mapping[str, Any]) -> bool:
    """Whether the config says null where OLMo Hybrid looks for its base."""
    params = config.get("rope_scaling") or config.get("rope_parameters")
    places = [params if isinstance(params, Mapping) and "rope_theta" in params else config]
    return all("rope_theta" in place and place["rope_theta"] is None for place in places)


def rotates_by_mosaic(config: Mapping[str, Any]) -> bool:
    """Whether MPT's own attn_config turns RoPE on, as llm-foundry does; transformers has ALiBi only."""
    attention = config.get("attn_config")
    return isinstance(attention, Mapping) and attention.get("rope") is True
