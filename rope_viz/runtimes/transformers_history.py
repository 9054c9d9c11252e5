"""Which architectures came after which release of transformers.

Read from `CONFIG_MAPPING_NAMES` and the configuration classes of transformers 4.43.4, 4.52.4 and 4.57.6.
"""


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# {the first of the four emulated releases that has them: model types}; what is not named here was there at 4.43.4.
INTRODUCED: dict[str, frozenset[str]] = {
    "4.52.4": names(
        """
        aria aria_text aya_vision bamba bitnet cohere2 colpali csm csm_depth_decoder_model deepseek_v3
        diffllama emu3 emu3_text_model gemma3 gemma3_text glm glm4 got_ocr2 granite granite_speech granitemoe
        granitemoehybrid granitemoeshared helium idefics3 internvl janus llama4 llama4_text llava_onevision
        mimi mistral3 mllama mllama_text_model modernbert moonshine moshi nemotron olmo2 olmoe phi4_multimodal
        phimoe qwen2_5_omni qwen2_5_omni_dit qwen2_5_omni_talker qwen2_5_omni_text qwen2_5_omni_thinker
        qwen2_5_vl qwen2_5_vl_text qwen2_audio qwen2_vl qwen2_vl_text qwen3 qwen3_moe shieldgemma2 smolvlm
        zamba2
        """
    ),
    "4.57.6": names(
        """
        EvollaModel apertus arcee blt_global_transformer blt_local_decoder blt_local_encoder blt_patcher
        cohere2_vision colqwen2 deepseek_v2 deepseek_vl deepseek_vl_hybrid dia dia_decoder dia_encoder doge
        dots1 ernie4_5 ernie4_5_moe evolla exaone4 falcon_h1 flex_olmo gemma3n gemma3n_text glm4_moe glm4v
        glm4v_moe glm4v_moe_text glm4v_text gpt_oss hunyuan_v1_dense hunyuan_v1_moe kyutai_speech_to_text lfm2
        lfm2_vl longcat_flash minimax ministral modernbert-decoder olmo3 ovis2 perception_lm qwen3_next
        qwen3_omni_moe qwen3_omni_moe_talker_code_predictor qwen3_omni_moe_talker_text qwen3_omni_moe_text
        qwen3_omni_moe_thinker qwen3_vl qwen3_vl_moe qwen3_vl_moe_text qwen3_vl_text seed_oss smollm3
        t5_gemma_module t5gemma vaultgemma voxtral
        """
    ),
    "5.23.0": names(
        """
        afmoe audioflamingo3 axk1 axk2 bailing_hybrid beam cohere2_moe colmodernvbert cosmos3_edge
        cosmos3_edge_text cosmos3_omni cwm deepseek_ocr2 deepseek_ocr2_encoder deepseek_ocr2_text deepseek_v32
        deepseek_v4 diffusion_gemma diffusion_gemma_text dots3_note dots3_note_audio_encoder dots3_note_text
        embedding_gemma2 embedding_gemma2_text ernie4_5_vl_moe ernie4_5_vl_moe_text esmc eurobert exaone4_5
        exaone_moe fast_vlm flint fun_asr_nano gemma4 gemma4_text gemma4_unified gemma4_unified_assistant
        gemma4_unified_text glm46v glm4_moe_lite glm_image glm_image_text glm_moe_dsa glm_ocr glm_ocr_text
        glmasr glmasr_encoder glmga gradium_phonon_tts granite_docling granite_docling_text
        granite_speech_plus granite_swa granitemoe_swa gte higgs_audio_v2 hrm_text hunyuan_vl hunyuan_vl_text
        hy_v3 hy_v4 hyperclovax hyperclovax_vision_v2 jais2 jev jina_embeddings_v3 kimi_k25 kolibri1 laguna
        lasr_encoder lfm2_moe lfm3 lfm3_vl lighton_ocr mellum mimi_decoder mimi_encoder mimo_v2_flash minicpm3
        minicpm_ocr minicpmv4_6 minicpmv4_7 minimax_m2 minimax_m3_vl minimax_m3_vl_text ministral3 mistral4
        mistral_large4 mistral_large4_text modernvbert molmo2 molmo2_text moonshine_streaming
        moss_transcribe_diarize muse_glimmer muse_glimmer_assistant muse_glimmer_text muse_spark
        muse_spark_text musicflamingo nanochat nemotron3_5_transcribe_asr_audio
        nemotron3_5_transcribe_word_timestamp nemotron3_diarization_audio neomme neucodec nomic_bert
        olmo_hybrid openai_privacy_filter paddleocr_vl paddleocr_vl_text pe_audio pe_audio_encoder
        pe_audio_video pe_video pocket_tts pocket_tts_audio_tokenizer pocket_tts_audio_tokenizer_decoder
        pocket_tts_audio_tokenizer_encoder pp_chart2table qianfan_ocr qwen3_5 qwen3_5_moe qwen3_5_moe_text
        qwen3_5_text qwen3_asr qwen4_exp qwen4_exp_text solar_open step3p5 step3p7 t5gemma2 t5gemma2_decoder
        t5gemma2_encoder t5gemma2_text timesfm2_5 ultrabert ultravbert unlimited_ocr unlimited_ocr_text
        vibevoice vibevoice_asr video_llama_3 voxtral_realtime voxtral_realtime_encoder voxtral_realtime_text
        xcodec2 youtu zaya
        """
    ),
}
